// SPDX-License-Identifier: Apache-2.0
// What the node hears of reads of packed datasets, so that it can unpack chunks before they are
// read (service/gathering/chunk_unpacker.h): the boxes, and where the chunks lie in the file.
//
// The table of chunks is a region of the file, which all processes share. It is made when HDF5 has
// unpacked the first chunks, as it costs a look at the whole index of the dataset.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/array.h"
#include "frontends/hdf5/dataset_read.h"

namespace cairn::hdf5 {

// The program has read that box. Requires: a packed array.
void tell_of_packed_read(const Dataset& dataset, Array& array, const DatasetRead& read,
                         const arrays::Box& box);

}  // namespace cairn::hdf5
