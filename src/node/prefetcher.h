// SPDX-License-Identifier: Apache-2.0
// Fetches what programs will read before they ask for it: learns from their accesses
// (node/read_streams.h) and reads from the backing store into RAM.
//
// Demand goes first: while a program waits for the backing store, nothing is fetched, for a limited
// time; and each fetch is one operation of at most 1 MiB, so that nobody waits long behind it. What
// waits in RAM for its use is bounded to a part of RAM, unless there is plenty of room.
//
// Thread safety: start() and stop() by the composing thread, take() by one thread, the rest by any.
// Ownership: borrows memory and clients; owns its threads.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/node_config.h"
#include "node/client_table.h"
#include "node/read_streams.h"
#include "node/source_files.h"
#include "tiers/actor.h"

namespace cairn::node {

class Prefetcher {
 public:
  static constexpr unsigned kWorkers = 2;

  Prefetcher(const NodeMemory& memory, const ClientTable& clients, const NodeConfig& config);
  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  bool is_wanted() const { return config_.prefetch_percent > 0; }
  void start();
  void stop();

  // An EventReader::Sink.
  void take(std::span<const ToldAccess> batch);
  // Processes have died: what they read is not waited for any more.
  void forget_dead();

  // The name of the predictor with this number in FetchJournal; empty when there is none.
  static std::string predictor_name(unsigned number);

 private:
  enum class Outcome : std::uint8_t { kDone, kNoRoom, kBroken };
  void work();
  Outcome fetch(Actor& actor, const WantedBlocks& wanted);
  void wait_for_demand(std::span<const std::uint16_t> slots) const;
  bool has_budget() const;

  const NodeMemory& memory_;
  const ClientTable& clients_;
  const NodeConfig& config_;
  SourceFiles sources_;

  std::mutex mutex_;
  std::condition_variable changed_;
  ReadStreams streams_;
  std::set<std::uint16_t> slots_;     // that have ever told something
  std::uint64_t evicted_unused_ = 0;  // bytes, when last looked at
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
