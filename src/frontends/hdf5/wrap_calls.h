// SPDX-License-Identifier: Apache-2.0
// How HDF5 wraps objects that it makes itself, and what it asks about connectors.
//
// HDF5 fetches a context at the begin of each call of a program and frees it at the end, so getting
// one of the native connector allocates nothing.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/callback.h"

namespace cairn::hdf5 {

void* get_lower_object(const void* object);
herr_t get_wrap_context(const void* object, void** context);
void* wrap_object(void* lower, H5I_type_t type, void* context);
void* unwrap_object(void* object);
herr_t free_wrap_context(void* context);

herr_t get_connector_class(void* object, H5VL_get_conn_lvl_t level, const H5VL_class_t** found);

// The one call that ends a request: HDF5 frees each, however waiting for it went.
herr_t free_request(void* request);

}  // namespace cairn::hdf5
