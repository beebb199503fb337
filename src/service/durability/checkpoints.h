// SPDX-License-Identifier: Apache-2.0
// Checkpoints: at regular intervals the dirty data of all files gets to the durable log although no
// program asks for it, so that a crash of the machine loses no more than that (the future work i of
// Hermes, HPDC 2018, section 6).
//
// Only what has changed since the last one is logged. A file of which something was stored past the
// log is made durable in the store. The log's device has at most kShare of the time for it: after
// each part of kBytesAtOnce it rests, and a checkpoint that is not done when the next one is due
// delays that.
//
// Thread safety: start() and stop() are the composing thread's. Ownership: owns its thread; borrows
// the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "service/durability/dirty_logging.h"
#include "service/durability/durability_counts.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

// Borrowed.
struct CheckpointParts {
  const NodeMemory& memory;
  LoggedFiles& logged;
  StoreFiles& files;
  Flusher& flusher;
  DurabilityCounts& counts;
};

class Checkpoints {
 public:
  static constexpr unsigned kSharePercent = 25;
  static constexpr std::uint64_t kBytesAtOnce = std::uint64_t{16} << 20;

  explicit Checkpoints(const CheckpointParts& parts) : with_(parts) {}
  ~Checkpoints() { stop(); }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  void start(std::chrono::seconds interval);
  void stop();

 private:
  void work(std::chrono::seconds interval);
  void make_one();
  // Whether to go on.
  bool rest(std::chrono::nanoseconds time);

  const CheckpointParts with_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
};

}  // namespace cairn::node
