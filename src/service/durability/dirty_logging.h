// SPDX-License-Identifier: Apache-2.0
// A checkpoint: the dirty data of all files goes to the durable log, file by file.
//
// Thread safety: any thread. Ownership: borrows everything.
#pragma once

#include <cstdint>

#include "service/logged_files/logged_files.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct DirtyLogging {
  std::uint64_t logged = 0;   // files that the log has wholly, and durably
  std::uint64_t refused = 0;  // files that only the store can have
  std::uint64_t skipped = 0;  // files that a full log has no room for, or a failed log lost
};

// Data of scratch files and of files without a name is nobody's after the node, and is left out.
DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files);

}  // namespace cairn::node
