// SPDX-License-Identifier: Apache-2.0
// Asks the connector below for the identity of a Dataset: its file, and its place in that file.
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
