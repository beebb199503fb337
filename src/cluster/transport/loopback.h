// SPDX-License-Identifier: Apache-2.0
// The transport of one process: a node's messages to itself, and those among nodes that share a
// process. Nothing is lost, repeated or reordered.
//
// A hub has the queues; each Loopback is one node's end of it. An end that is destroyed is a peer
// that is down: what waits for it is dropped, and a node that sends to it hears so.
//
// Thread safety: none: one thread owns a hub with all its ends. Ownership: the hub outlives its
// ends. A queue holds kQueuedMax messages and refuses more.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "cluster/transport/byte_codec.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

class Loopback;

class LoopbackHub {
 public:
  using Clock = std::function<std::int64_t()>;
  // Nodes 1 to `nodes` may have an end. `now_ns`: the clock of all of them.
  LoopbackHub(std::uint32_t nodes, Clock now_ns) : nodes_(nodes), now_ns_(std::move(now_ns)) {}

 private:
  friend class Loopback;
  const std::uint32_t nodes_;
  const Clock now_ns_;
  std::map<NodeId, Loopback*> ends_;
};

class Loopback final : public Transport {
 public:
  static constexpr std::size_t kQueuedMax = 65'536;

  // Requires: a node of the hub that has no end yet.
  Loopback(LoopbackHub& hub, NodeId self);
  ~Loopback() override;
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  NodeId self() const override { return self_.node; }
  void set_handler(MessageHandler* handler) override { handler_ = handler; }
  void set_identity(Incarnation incarnation, Epoch epoch) override;
  Status send(NodeId peer, MessageType type, std::span<const std::byte> header, Payload payload,
              std::int64_t deadline_ns) override;
  int progress() override;

 private:
  struct Queued {
    Message message;  // its spans point into the two below
    Bytes header;
    Payload payload;
    Bytes copied;
    std::int64_t deadline_ns = 0;
  };

  LoopbackHub& hub_;
  NodeLife self_;
  Epoch epoch_{};
  MessageHandler* handler_ = nullptr;
  std::deque<Queued> queue_;
  std::deque<NodeId> down_;  // peers that a send has found gone
};

}  // namespace cairn::cluster
