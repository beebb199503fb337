// SPDX-License-Identifier: Apache-2.0
// The one place at which a read of a dataset may be answered without the connector below.
//
// Thread safety: as open_file.h.
#pragma once

#include <cstddef>

#include "frontends/hdf5/object.h"

namespace cairn::hdf5 {

// A read of one dataset, as H5Dread() was given it.
struct DatasetRead {
  hid_t memory_type;
  // H5S_ALL, H5S_BLOCK and H5S_PLIST are no ids of spaces.
  hid_t memory_space;
  hid_t file_space;
  hid_t transfer;
  void* buffer;
};

// Returns: whether the buffer has been filled; false where the connector below is to be asked, in
// which case nothing has been written to the buffer. Any doubt means false.
bool serve(Dataset& dataset, const DatasetRead& read);

}  // namespace cairn::hdf5
