// SPDX-License-Identifier: Apache-2.0
// Agreement on a log of commands: the interface that the coordinator needs, whatever agrees.
//
// What holds: every state machine applies the same commands in the same order. At most one node is
// the leader of a term. A command that the leader has seen applied was agreed on by a majority
// after it was proposed, so the leader was the leader then, whatever it believed.
//
// Thread safety: none: one thread. Units: nanoseconds of the node's monotonic clock.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/cluster_ids.h"
#include "base/status.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

// What commands are applied to.
class StateMachine {
 public:
  virtual ~StateMachine() = default;
  virtual void apply(std::span<const std::byte> command) = 0;
  virtual std::vector<std::byte> snapshot() const = 0;
  // Errors: kInvalid for bytes that no snapshot() has made.
  virtual Status restore(std::span<const std::byte> snapshot) = 0;
};

class Consensus {
 public:
  // True once the command is applied here; false when it will not be heard of again: it may have
  // been applied by others, and may still be.
  using Outcome = std::function<void(bool is_applied)>;

  virtual ~Consensus() = default;
  virtual bool is_leader() const = 0;
  virtual std::uint64_t term() const = 0;
  // As far as this node knows; kNone when it knows none.
  virtual NodeId leader() const = 0;
  // Errors: kUnavailable where this node does not lead. `outcome` comes later, from progress(),
  // tick() or on_message(), and never where this returns an error.
  virtual Status propose(std::span<const std::byte> command, Outcome outcome) = 0;
  virtual void on_message(const Message& message, std::int64_t now_ns) = 0;
  virtual void tick(std::int64_t now_ns) = 0;
  // Writes what waits to be written and calls what waits for that. Returns: whether there was any.
  virtual bool progress() = 0;
};

}  // namespace cairn::cluster
