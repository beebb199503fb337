// SPDX-License-Identifier: Apache-2.0
// The HDF5 connector `cairn`: a program that sets
//
//   HDF5_VOL_CONNECTOR=cairn HDF5_PLUGIN_PATH=.../lib/cairn/hdf5
//
// has all its calls of HDF5 come by here. All go on to the connector below, which is the native
// one; serve.h is where a read may be answered otherwise.
//
// Thread safety: any thread.
#pragma once

#include "frontends/hdf5/hdf5_functions.h"

namespace cairn::hdf5 {

// Numbers of 256 to 511 are for connectors that are not registered with the HDF Group.
inline constexpr H5VL_class_value_t kConnectorValue = 431;
inline constexpr char kConnectorName[] = "cairn";

// The class with the callbacks of a slot (library.h).
const H5VL_class_t& connector_class_of(int slot);

// The class for the library that an address lies in; null where the library gets none.
const H5VL_class_t* connector_class_for(const void* address);

}  // namespace cairn::hdf5
