// SPDX-License-Identifier: Apache-2.0
// Lists the data that is not stored yet, by file: for the drain, for `cairn status` and for the
// final report.
//
// Thread safety: any thread; a snapshot that may be stale at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct UnstoredFile {
  ObjectIndex object = ObjectIndex::kNone;
  std::string path;
  std::uint64_t dirty_bytes = 0;
  int error = 0;  // errno of the last attempt, 0 when there was none
  std::uint32_t failures = 0;
  std::int64_t last_failure_ns = 0;
  std::int64_t passed_ns = 0;  // StoreFile::passed_ns
  double since_seconds = 0;
  std::vector<LostRange> lost;  // of what is dirty, that which its tier does not give
};

struct DirtyView {
  std::vector<UnstoredFile> files;  // failing ones first, then the largest
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_tier[kTiersMax] = {};
};

// Also looks up the paths of the first `paths_max` files.
DirtyView view_dirty(const NodeMemory& memory, const StoreFiles& files, std::size_t paths_max);

// The same files with the errors of their fsyncs, and those that have lost bytes: each file once.
std::vector<UnstoredFile> list_unsynced(const NodeMemory& memory, const StoreFiles& files,
                                        std::size_t paths_max);

// Looks up the paths of the first `paths_max` of `unstored` that have none.
void name_files(const NodeMemory& memory, const StoreFiles& files, std::size_t paths_max,
                std::vector<UnstoredFile>& unstored);

}  // namespace cairn::node
