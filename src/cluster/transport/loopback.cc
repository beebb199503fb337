// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport/loopback.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace cairn::cluster {

Loopback::Loopback(LoopbackHub& hub, NodeId self) : hub_(hub), self_{.node = self} {
  CAIRN_CHECK(raw(self) >= 1 && raw(self) <= hub.nodes_);
  CAIRN_CHECK(hub.ends_.emplace(self, this).second);
}

Loopback::~Loopback() { CAIRN_CHECK(hub_.ends_.erase(self_.node) == 1); }

void Loopback::set_identity(Incarnation incarnation, Epoch epoch) {
  self_.incarnation = incarnation;
  epoch_ = epoch;
}

Status Loopback::send(NodeId peer, MessageType type, std::span<const std::byte> header,
                      Payload payload, std::int64_t deadline_ns) {
  if (raw(peer) < 1 || raw(peer) > hub_.nodes_) {
    return {StatusCode::kInvalid, "node " + std::to_string(raw(peer)) + " is not in the roster"};
  }
  if (header.size() > kHeaderBytesMax || payload.bytes.size() > kPayloadBytesMax) {
    return {StatusCode::kInvalid, "a message above the limits of size"};
  }
  const auto found = hub_.ends_.find(peer);
  if (found == hub_.ends_.end()) {
    if (down_.size() < kQueuedMax) down_.push_back(peer);
    return {StatusCode::kUnavailable, "node " + std::to_string(raw(peer)) + " is down"};
  }
  std::deque<Queued>& queue = found->second->queue_;
  if (queue.size() >= kQueuedMax) {
    return {StatusCode::kExhausted, "too many messages wait for one node"};
  }
  Queued& queued = queue.emplace_back();
  queued.header.assign(header.begin(), header.end());
  queued.deadline_ns = deadline_ns;
  if (payload.owner == nullptr) {
    queued.copied.assign(payload.bytes.begin(), payload.bytes.end());
    payload.bytes = queued.copied;
  }
  queued.payload = std::move(payload);
  queued.message = {self_, epoch_, type, queued.header, queued.payload.bytes};
  return Status::ok();
}

int Loopback::progress() {
  int calls = 0;
  // A handler may send: this delivers what was there at the call, so that it ends.
  for (std::size_t left = down_.size(); left > 0; --left) {
    const NodeId peer = down_.front();
    down_.pop_front();
    if (handler_ == nullptr) continue;
    handler_->on_peer_down(peer);
    ++calls;
  }
  for (std::size_t left = queue_.size(); left > 0; --left) {
    // A moved vector keeps its bytes where they are, and the spans of the message with them.
    const Queued queued = std::move(queue_.front());
    queue_.pop_front();
    if (handler_ == nullptr || hub_.now_ns_() > queued.deadline_ns) continue;
    CAIRN_DCHECK(queued.message.payload.size() == queued.payload.bytes.size());
    handler_->on_message(queued.message);
    ++calls;
  }
  return calls;
}

}  // namespace cairn::cluster
