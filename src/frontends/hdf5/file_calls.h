// SPDX-License-Identifier: Apache-2.0
// Calls about files, which may come before anything is open, and mounts.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/callback.h"

namespace cairn::hdf5 {

void* create_file(Library& library, const char* name, unsigned flags, hid_t creation, hid_t access,
                  hid_t transfer, void** request);
void* open_file(Library& library, const char* name, unsigned flags, hid_t access, hid_t transfer,
                void** request);
// Flush, reopen, compare; and, without an object, whether a file can be opened, and its removal.
herr_t file_specific(Library& library, void* object, H5VL_file_specific_args_t* arguments,
                     hid_t transfer, void** request);
// Mount, unmount, flush, refresh.
herr_t group_specific(void* object, H5VL_group_specific_args_t* arguments, hid_t transfer,
                      void** request);

}  // namespace cairn::hdf5
