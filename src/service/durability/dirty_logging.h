// SPDX-License-Identifier: Apache-2.0
// The dirty data of all files goes to the durable log, file by file: a checkpoint, or what is kept
// of a job that is out of time.
//
// Thread safety: any thread. Ownership: borrows everything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "service/logged_files/logged_files.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct DirtyLogging {
  std::uint64_t logged = 0;          // files that the log has wholly, and durably
  std::uint64_t skipped = 0;         // files that a full log has no room for, or a failed log lost
  std::vector<ObjectIndex> refused;  // files that only the store can have
};

// How the log's device is shared with others.
struct LoggingPace {
  // So much of a file is logged at a time.
  std::uint64_t bytes_at_once = UINT64_MAX;
  // The round visits clean files as well, if their stored data is not durable in the store.
  bool takes_owed = false;
  // Called after each part, which took so many nanoseconds; false ends the round.
  std::function<bool(std::int64_t)> rest;
  // The round waits so long for a flush of the log. After one in vain it skips all other files.
  std::chrono::milliseconds commit_max = kCommitMax;
};

// Data of scratch files and of files without a name is nobody's after the node, and is left out.
DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files,
                       const LoggingPace& pace = {});

}  // namespace cairn::node
