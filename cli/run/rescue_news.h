// SPDX-License-Identifier: Apache-2.0
//
// What a node that has ended without an answer has left word of in its directory: that everything
// is stored, or where a rescue has put what could not be.
//
// Thread safety: reads files. Ownership: results are values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/node/run_directory.h"

namespace cairn::cli {

struct RescueNews {
  bool stored = false;
  std::string directory;  // empty when nothing could be saved
  uint64_t files = 0;
  uint64_t saved_bytes = 0;
  uint64_t lost_bytes = 0;
  std::string old_log;  // a durable tier whose log has older bytes of these files; empty: none
};

// None when the node lives, or has left no word.
std::optional<RescueNews> read_rescue_news(const NodePaths& node);

// The lines about it, with the command that finishes the job.
std::vector<std::string> rescue_lines(const std::string& node, const RescueNews& news);

// The line about the durable tier of a node that has died with its keeper. Empty: it has none.
std::string durable_line(const NodePaths& node);

}  // namespace cairn::cli
