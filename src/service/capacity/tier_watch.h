// SPDX-License-Identifier: Apache-2.0
// Takes a tier out of service whose device fails, and moves its data off.
//
//   in the tier          when it fails (memory/tiers/failure_board.h)
//   room                 placement passes it over at once; reservations go to other tiers
//   clean blocks         leave: the store has them
//   dirty blocks         move to tiers that have room, and all files are stored meanwhile
//   unreadable blocks    stay dirty where they are and are tried again: the flusher names them
//
// It warns the user of the node. A device that does not answer is left alone until it does. The
// tier stays out for the life of the node: a device that has failed is not trusted again.
//
// Thread safety: start() and stop() by the composing thread. Ownership: borrows everything but its
// thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/node_config.h"
#include "service/capacity/account_registry.h"
#include "service/organizer/device_probe.h"
#include "service/organizer/move_batch.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

// What an operation of a tier's device has failed with, for the user.
std::string device_error_text(int error);

class TierWatch {
 public:
  struct Parts {
    const NodeMemory& memory;
    Owner self;
    const NodeConfig& config;
    Flusher& flusher;
    AccountRegistry& accounts;
    std::function<void(const std::string& text)> warn;  // the user of the node
  };
  explicit TierWatch(const Parts& parts) : of_(parts) {}
  ~TierWatch() { stop(); }

  void start();
  void stop();

 private:
  void run();
  bool is_due(unsigned tier) const;
  bool has_news() const;
  std::uint32_t empty_all(Actor& actor, MoveBatch& batch);
  void take_out(unsigned tier);
  void tell(unsigned tier, std::uint64_t lost_slabs) const;
  // Moves off what can be. Returns how many blocks are left.
  std::uint32_t empty(Actor& actor, MoveBatch& batch, unsigned tier);
  bool answers(unsigned tier);
  bool move(Actor& actor, MoveBatch& batch, BucketIndex bucket) const;
  bool has_room(TierId tier) const;

  const Parts of_;
  std::array<std::unique_ptr<DeviceProbe>, kTiersMax> probes_;  // of those that do not answer
  std::uint32_t taken_out_ = 0;                                 // by this service: a bit for each
  std::thread thread_;
  std::atomic<bool> stopping_{false};
};

}  // namespace cairn::node
