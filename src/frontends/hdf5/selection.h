// SPDX-License-Identifier: Apache-2.0
// Which box of a dataset a read wants, where it wants one.
//
// Thread safety: functions of HDF5, so as open_file.h.
#pragma once

#include <optional>

#include "frontends/hdf5/dataset_read.h"
#include "policy/arrays/box.h"

namespace cairn::hdf5 {

// The cells that a selection of a dataset's space has of an array of that shape, if they are a box.
std::optional<arrays::Box> box_in_file(const Hdf5Functions& call, hid_t file_space,
                                       const arrays::Coordinates& shape);

// The cells that a selection of a dataset's space has of an array of that shape, if they are a
// regular hyperslab, which may have holes.
std::optional<arrays::Hyperslab> hyperslab_in_file(const Hdf5Functions& call, hid_t file_space,
                                                   const arrays::Coordinates& shape);

// Whether the cells of a box of such an array are to lie in the program's memory one behind the
// other.
bool has_no_gaps(const Hdf5Functions& call, const DatasetRead& read, const arrays::Box& box,
                 const arrays::Coordinates& shape);

// The cells that a read selects of an array of that shape, if they are a box, and if they are to
// lie in the program's memory one behind the other. None else.
std::optional<arrays::Box> box_of(const Hdf5Functions& call, const DatasetRead& read,
                                  const arrays::Coordinates& shape);

}  // namespace cairn::hdf5
