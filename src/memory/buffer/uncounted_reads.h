// SPDX-License-Identifier: Apache-2.0
// While it is in scope, what a thread reads counts nowhere: no program has asked for it.
//
// A signal handler of the program may write meanwhile. Its write would be marked in a shard that
// the service does not see, so that shard says from the beginning that another one is under way:
// then the process counts as one that may be writing all that it has open (WriteUnderWay).
//
// Thread safety: the actor's thread.
#pragma once

#include "memory/buffer/write_under_way.h"
#include "memory/tiers/actor.h"

namespace cairn {

class UncountedReads {
 public:
  explicit UncountedReads(Actor& actor) : actor_(actor), counters_(actor.counters) {
    unread_.writing.store(kSomeOther, std::memory_order_relaxed);
    actor.counters = &unread_;
  }
  ~UncountedReads() { actor_.counters = counters_; }
  UncountedReads(const UncountedReads&) = delete;
  UncountedReads& operator=(const UncountedReads&) = delete;

 private:
  static constexpr std::uint32_t kSomeOther = UINT32_MAX;  // no object's number

  Actor& actor_;
  CounterShard* const counters_;
  CounterShard unread_{};
};

}  // namespace cairn
