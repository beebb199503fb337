// SPDX-License-Identifier: Apache-2.0
// Takes what is dirty to the durable log, file by file, without anybody having asked.
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
  // files that the log has no room for, or that it could not make durable
  std::uint64_t skipped = 0;
};

// Data of scratch files and of files without a name is nobody's after the node, and is left out.
DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files);

}  // namespace cairn::node
