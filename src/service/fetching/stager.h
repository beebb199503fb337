// SPDX-License-Identifier: Apache-2.0
// Staging by request: files into a tier before a program asks for them, and out of the tiers when
// nobody will.
//
// Thread safety: each call in its caller's thread; any number at once. Ownership: borrows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/treatment/buffered_directories.h"
#include "service/write_back/flusher.h"

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

class Stager {
 public:
  // `self`: the service as the owner of locks and buckets.
  // `fetches`: held shared while a file is read in or written out.
  Stager(const NodeMemory& memory, Owner self, Flusher& flusher,
         const BufferedDirectories& directories, std::shared_mutex& fetches)
      : memory_(memory),
        self_(self),
        flusher_(flusher),
        directories_(directories),
        fetches_(fetches) {}

  // Reads the files into the tiers. Blocks that are resident in `tier` or above stay there.
  StageOutcome stage_in(const StageRequest& request) const;
  // Stores the files durably and takes them out of the tiers.
  StageOutcome stage_out(const StageRequest& request) const;

 private:
  class Staging;

  const NodeMemory& memory_;
  const Owner self_;
  Flusher& flusher_;
  const BufferedDirectories& directories_;
  std::shared_mutex& fetches_;
};

}  // namespace cairn::node
