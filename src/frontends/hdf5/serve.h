// SPDX-License-Identifier: Apache-2.0
// The one place at which a read of a dataset may be answered without the connector below.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/dataset_read.h"
#include "frontends/hdf5/object.h"

namespace cairn::hdf5 {

// Returns: whether the buffer has been filled; false where the connector below is to be asked,
// which fills all of it. Any doubt means false.
bool serve(Dataset& dataset, const DatasetRead& read);

// A read of several datasets at once, one of which is this: the connector below has to do it.
void note_unserved(Object* dataset, hid_t transfer);

// What the node has not heard yet of its reads it hears now, or with the next.
void before_close(Dataset& dataset, hid_t transfer);
// The same of all datasets that the program has read through that file.
void before_close(OpenFile& file);

// The connector below has filled it.
void after_read(const Dataset& dataset);

}  // namespace cairn::hdf5
