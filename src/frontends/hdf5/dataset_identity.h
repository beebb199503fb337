// SPDX-License-Identifier: Apache-2.0
// The connector below tells which dataset of which file a Dataset is.
//
// Many datasets are opened and never read, so an open asks nothing.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/object.h"

namespace cairn::hdf5 {

// Fills in the identity at the first call. Returns: whether it is known.
bool identify(Dataset& dataset, hid_t transfer);

}  // namespace cairn::hdf5
