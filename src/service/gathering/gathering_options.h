// SPDX-License-Identifier: Apache-2.0
// What those who make regions of arrays work with. All of it outlives them.
#pragma once

#include <shared_mutex>
#include <string>

#include "memory/tiers/node_memory.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct GatheringOptions {
  const NodeMemory& memory;
  Owner self;  // the service as the owner of locks and buckets
  StoreFiles& files;
  Flusher& flusher;
  std::shared_mutex& fetches;        // held shared while something is fetched
  unsigned budget_percent;           // of RAM, for what is fetched ahead; 0: nothing is gathered
  std::string remember_directory{};  // of grids for the nodes after this one; empty: none
};

}  // namespace cairn::node
