// SPDX-License-Identifier: Apache-2.0
// Store everything that is dirty, make it durable, and say what could not be stored.
//
// "Everything" is what was dirty when the drain began: others may go on writing, and a drain must
// end all the same.
//
// Thread safety: any number of drains at once, each in its caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "service/write_back/dirty_view.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

struct DrainProgress {
  std::uint64_t remaining_bytes = 0;
  std::uint64_t remaining_files = 0;
  std::uint64_t rate_bytes_per_second = 0;
  double idle_seconds = 0;  // for so long nothing was stored
  std::string file;
};

struct DrainOptions {
  // Without a limit the drain ends when all is stored or every file left has failed twice since it
  // began.
  std::optional<double> timeout_seconds;
  // Only the files of this file system (st_dev); 0: all.
  std::uint64_t device = 0;
  // For a program's sync(), which has the kernel make durable what is stored.
  bool is_sync = false;
  // Called every kProgressMs; false gives up.
  std::function<bool(const DrainProgress&)> progress;
};

struct DrainOutcome {
  bool stored = false;
  std::vector<UnstoredFile> left;
  int sync_error = 0;  // everything was written, but the device could not make it durable
  double seconds = 0;
};

inline constexpr int kProgressMs = 200;

DrainOutcome drain(const NodeMemory& memory, StoreFiles& files, Flusher& flusher,
                   const DrainOptions& options);

}  // namespace cairn::node
