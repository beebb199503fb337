// SPDX-License-Identifier: Apache-2.0
// The node's regions, if there is a node: the functions that the preload library of this process
// exports (cairn/region_calls.h).
//
// Thread safety: any thread.
#pragma once

#include "cairn/region_calls.h"

namespace cairn::hdf5 {

struct RegionCalls {
  decltype(&::cairn_region_version) version;
  decltype(&::cairn_region_read) read;
  decltype(&::cairn_region_keep) keep;
  decltype(&::cairn_array_read) tell;
  decltype(&::cairn_packed_read) tell_packed;
  decltype(&::cairn_array_news) news;
  decltype(&::cairn_array_grid) grid;
  decltype(&::cairn_array_fetch) fetch;
};

// Null where the process has no such functions.
const RegionCalls* region_calls();

}  // namespace cairn::hdf5
