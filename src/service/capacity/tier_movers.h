// SPDX-License-Identifier: Apache-2.0
// Makes room in several tiers at once, one thread each, so that a slow device holds up nobody but
// who needs it.
//
// A tier begins when the one below has room for what leaves it, so that nothing is dropped, or put
// on a slower device, because of an order of events. Only when somebody waits for the room, any
// tier below will do.
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

#include "service/organizer/organizer.h"

namespace cairn::node {

class TierMovers {
 public:
  TierMovers(const NodeMemory& memory, Owner self, const PlacementPolicy& placement,
             const ReplacementPolicy& replacement, std::array<TierLimits, kTiersMax> limits);
  ~TierMovers();
  TierMovers(const TierMovers&) = delete;
  TierMovers& operator=(const TierMovers&) = delete;

  // Slabs by tier that are to be free after room is made; see Organizer::make_room().
  using Wanted = std::array<std::uint32_t, kTiersMax>;

  // Makes room in every tier that is short of it. Returns when the fastest of them is through, with
  // the results of all movers that have ended; a mover that is still at work wakes the organizer's
  // thread at its end.
  RoomMade make_room(const Wanted& wanted = {});

 private:
  struct Mover {
    std::thread thread;
    bool is_asked = false;  // by make_room(), until it is done
    std::uint32_t wanted = 0;
    RoomMade made;  // since somebody last asked
  };
  void work(unsigned tier);
  bool is_short(unsigned tier) const;
  bool must_share(unsigned tier) const;
  bool has_room_below(unsigned tier) const;
  void wait_for_room_below(unsigned tier, std::uint32_t wanted);

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
  const Mover* awaited_ = nullptr;
  bool stopping_ = false;
};

}  // namespace cairn::node
