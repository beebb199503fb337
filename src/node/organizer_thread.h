// SPDX-License-Identifier: Apache-2.0
// The thread that keeps room in every tier: it wakes when a tier runs low, and asks the organizer
// to make room.
//
// Thread safety: start() and stop() by the composing thread. Ownership: borrows everything but its
// thread.
#pragma once

#include <atomic>
#include <thread>

#include "base/node_config.h"
#include "node/flusher.h"
#include "organizer/organizer.h"
#include "tiers/actor.h"

namespace cairn::node {

class OrganizerThread {
 public:
  OrganizerThread(const NodeMemory& memory, Owner self, const NodeConfig& config, Flusher& flusher);
  ~OrganizerThread();

  void start();
  void stop();

 private:
  enum class Room : std::uint8_t {
    kEnough,
    kProgress,  // still short, but blocks left
    kStuck      // still short, and nothing can leave before it is stored
  };
  void run();
  void sleep(std::uint32_t seen, int timeout_ms);
  Room make_room(Organizer& organizer, Actor& actor);
  void reclaim_objects(Actor& actor) const;

  const NodeMemory& memory_;
  const Owner self_;
  const NodeConfig& config_;
  Flusher& flusher_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  bool gave_up_ = false;  // the thread's own: nothing could leave at the last look
};

}  // namespace cairn::node
