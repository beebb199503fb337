// SPDX-License-Identifier: Apache-2.0
// Boxes of a contiguous dataset. Their rows lie far apart in the file, so the node gathers boxes
// that it expects to be read, and keeps them as regions (service/gathering). A box that it has is
// read with one copy. A part of one, or a box across several, is copied row by row from those
// that it is in, if the node has all of it: the node knows in what grid the array is read. It hears
// of each box that it does not have.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/array.h"
#include "frontends/hdf5/dataset_read.h"

namespace cairn::hdf5 {

// Returns: whether the buffer has been filled with the cells of the box, which has no gaps there.
// If not, tell_of_read() is due when the connector below has read it.
bool read_gathered(const Dataset& dataset, Array& array, const DatasetRead& read,
                   const arrays::Box& box);

// The connector below has read what was asked for last.
void tell_of_read(const Dataset& dataset);

}  // namespace cairn::hdf5
