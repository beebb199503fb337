// SPDX-License-Identifier: Apache-2.0
// The thread that keeps room in every tier: it wakes when a tier runs low, and has room made in all
// that are short (service/capacity/tier_movers.h).
//
// Thread safety: start() and stop() by the composing thread. Ownership: borrows everything but its
// thread.
#pragma once

#include <atomic>
#include <thread>

#include "base/node_config.h"
#include "memory/tiers/actor.h"
#include "service/capacity/headroom.h"
#include "service/capacity/placement_engine.h"
#include "service/capacity/tier_movers.h"
#include "service/organizer/organizer.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

// The policies that decide where blocks go, and which leave.
struct Deciders {
  PlacementEngine& placement;
  const ReplacementPolicy& replacement;
};

class OrganizerThread {
 public:
  OrganizerThread(const NodeMemory& memory, Owner self, const NodeConfig& config, Flusher& flusher,
                  const Deciders& deciders);
  ~OrganizerThread();

  void start();
  void stop();

  // Nothing moves and nothing is dropped, at this instant. Any thread.
  bool is_at_rest() const { return is_at_rest_.load(); }

 private:
  enum class Room : std::uint8_t {
    kEnough,
    kProgress,  // still short, but blocks left
    kGoingOn,   // a slower tier's mover is at work, and wakes us
    kStuck      // still short, and nothing can leave before it is stored
  };
  void run();
  void sleep(std::uint32_t heard, int timeout_ms);
  Room make_room(TierMovers& movers);
  void reclaim_objects(Actor& actor) const;
  // Follows the files' hotness where a policy places by it. Returns when to look again; kIdleMs:
  // when somebody reads.
  int follow_hotness(Organizer& organizer, Actor& actor);
  int raise_some(Organizer& organizer, Actor& actor);
  // Keeps as much of the RAM tier free as the program's next burst of writing will take. Returns
  // when to look again; kIdleMs: when somebody places blocks.
  int follow_bursts(Organizer& organizer, Actor& actor);
  std::uint64_t reads_so_far() const;
  std::uint64_t written_so_far() const;

  const NodeMemory& memory_;
  const Owner self_;
  const NodeConfig& config_;
  Flusher& flusher_;
  PlacementEngine& placement_;
  const ReplacementPolicy& replacement_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_at_rest_{false};
  std::uint64_t reads_seen_ = 0;
  std::int64_t ranked_ns_ = 0;
  std::int64_t rank_every_ms_ = 0;
  std::vector<RisingFile> rising_;  // what is left of the last ranking's
  Headroom headroom_;
  std::uint64_t consumed_slabs_ = 0;     // of the RAM tier, by clients
  std::uint32_t free_slabs_before_ = 0;  // of the RAM tier, at the last look
  std::uint32_t slabs_made_free_ = 0;    // of the RAM tier, by the organizer since
  bool gave_up_ = false;                 // the thread's own: nothing could leave at the last look
};

}  // namespace cairn::node
