// SPDX-License-Identifier: Apache-2.0
// Makes room in several tiers at once, one thread each, so that a slow device holds up nobody but
// who needs it.
//
// A tier begins when the one below has room for what leaves it, so that nothing is dropped, or put
// on a slower device, because of an order of events.
//
// Thread safety: make_room() by one thread. Ownership: borrows memory and policies, owns its
// threads and their rings.
#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "organizer/organizer.h"

namespace cairn::node {

class TierMovers {
 public:
  TierMovers(const NodeMemory& memory, Owner self, const PlacementPolicy& placement,
             const ReplacementPolicy& replacement, std::array<TierLimits, kTiersMax> limits);
  ~TierMovers();
  TierMovers(const TierMovers&) = delete;
  TierMovers& operator=(const TierMovers&) = delete;

  // Makes room in every tier that is short of it. Returns what came of all of them together.
  RoomMade make_room();

 private:
  struct Mover {
    std::thread thread;
    bool is_asked = false;  // by make_room(), until it is done
    RoomMade made;
  };
  void work(unsigned tier);
  bool is_short(unsigned tier) const;
  bool has_news(unsigned tier) const;
  void wait_for_room_below(unsigned tier);

  const NodeMemory& memory_;
  const Owner self_;
  const PlacementPolicy& placement_;
  const ReplacementPolicy& replacement_;
  const std::array<TierLimits, kTiersMax> limits_;
  const unsigned tiers_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable done_;
  std::array<Mover, kTiersMax> movers_;
  bool stopping_ = false;
};

}  // namespace cairn::node
