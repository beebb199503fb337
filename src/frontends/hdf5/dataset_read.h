// SPDX-License-Identifier: Apache-2.0
// A read of a dataset, as it comes from HDF5.
//
// Thread safety: values.
#pragma once

#include "frontends/hdf5/hdf5_functions.h"

namespace cairn::hdf5 {

// A read of one dataset, as H5Dread() was given it.
struct DatasetRead {
  hid_t memory_type;
  // H5S_ALL, H5S_BLOCK and H5S_PLIST are no ids of spaces.
  hid_t memory_space;
  hid_t file_space;
  hid_t transfer;
  void* buffer;
  // A part of a collective read: what the connector reads for it is a call of its own (ranks.h).
  bool is_apart = false;
};

}  // namespace cairn::hdf5
