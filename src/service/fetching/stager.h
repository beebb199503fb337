// SPDX-License-Identifier: Apache-2.0
// Staging by request: files into a tier before a program asks for them, and out of the tiers when
// nobody will.
//
// Thread safety: each call in its caller's thread; any number at once. Ownership: borrows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "service/attachment/node_context.h"

namespace cairn::node {

struct StageProgress {
  std::uint64_t files_done = 0;
  std::uint64_t files_total = 0;
  std::uint64_t bytes_done = 0;
  std::string file;
};

struct StageFailure {
  std::string path;
  std::string message;
};

struct StageOutcome {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;          // staged by this call
  std::uint64_t bytes_no_room = 0;  // of stage-in: not taken, because the tiers are full
  std::vector<StageFailure> failures;
  bool given_up = false;
};

struct StageRequest {
  std::vector<std::string> paths;  // absolute, regular files
  std::optional<TierId> tier;      // of stage-in: where to; without: where the plan puts it
  std::function<bool(const StageProgress&)> progress;  // false gives up
};

// Reads the files into the tiers. What is resident in `tier` or above stays where it is.
// How a file is treated that is opened for reading only, as rules and the node's defaults say.
ObjectHandling handling_for_reader(const NodeContext& context, const std::string& path,
                                   std::uint64_t size);

StageOutcome stage_in(const NodeContext& context, const StageRequest& request);

// Stores the files durably and takes them out of the tiers.
StageOutcome stage_out(const NodeContext& context, const StageRequest& request);

}  // namespace cairn::node
