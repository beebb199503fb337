// SPDX-License-Identifier: Apache-2.0
// A transfer may be told to change what it reads, or how it checks it.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/library.h"

namespace cairn::hdf5 {

// Whether nothing is special about a transfer.
bool is_plain(const Library& library, hid_t transfer);
// The same of a collective one, but that it is.
bool is_plain_but_collective(const Library& library, hid_t transfer);

}  // namespace cairn::hdf5
