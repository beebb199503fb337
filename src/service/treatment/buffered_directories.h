// SPDX-License-Identifier: Apache-2.0
// The directories that a node buffers, as far as it knows: its own and those of its runs; and how a
// file below them is treated.
//
// Thread safety: all functions from any thread. Ownership: borrows configuration and runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/run_table.h"

namespace cairn::node {

class BufferedDirectories {
 public:
  BufferedDirectories(const NodeConfig& config, const RunTable& runs)
      : config_(config), runs_(runs) {}

  std::vector<std::string> all() const;

 private:
  const NodeConfig& config_;
  const RunTable& runs_;
};

// The part of `path` below one of the directories; null when the path is below none.
const char* part_below(const std::string& path, const std::vector<std::string>& directories);

// The handling of a file that a program opens for reading only: the rules decide, then the node's
// defaults.
ObjectHandling handling_for_reader(const NodeMemory& memory, const BufferedDirectories& directories,
                                   const std::string& path, std::uint64_t size);

}  // namespace cairn::node
