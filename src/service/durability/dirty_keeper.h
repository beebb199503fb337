// SPDX-License-Identifier: Apache-2.0
// Logs what is dirty when a job is about to end, in a thread of its own: nobody waits longer than
// he wants to for a store that does not answer.
//
// Thread safety: all functions from any thread, stop() from the composing one. Ownership: owns its
// thread, which begins with the first round; borrows the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "service/durability/dirty_logging.h"

namespace cairn::node {

class DirtyKeeper {
 public:
  DirtyKeeper(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files)
      : memory_(memory), logged_(logged), files_(files) {}
  ~DirtyKeeper() { stop(); }
  DirtyKeeper(const DirtyKeeper&) = delete;
  DirtyKeeper& operator=(const DirtyKeeper&) = delete;

  // Has a round begin after the call. Does not wait. Returns: its number.
  std::uint64_t begin();
  // What a round came to that began after the call; none if it has not ended in `patience`.
  std::optional<DirtyLogging> round(std::chrono::milliseconds patience);
  // Waits for the round under way. That waits no longer than kCommitMax for its commits, but as
  // long as the log's device takes for a new segment.
  void stop();

 private:
  void work();

  const NodeMemory& memory_;
  LoggedFiles& logged_;
  const StoreFiles& files_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wanted_ = 0;
  std::uint64_t ended_ = 0;
  DirtyLogging last_;
  bool stopping_ = false;
};

}  // namespace cairn::node
