// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport/testing/simulated_transport.h"

#include "base/check.h"

namespace cairn::cluster {

void SimulatedTransport::set_identity(Incarnation incarnation, Epoch epoch) {
  self_.incarnation = incarnation;
  epoch_ = epoch;
}

Status SimulatedTransport::send(NodeId peer, MessageType type, std::span<const std::byte> header,
                                Payload payload, std::int64_t deadline_ns) {
  CAIRN_CHECK(network_.is_up(self_.node));
  if (raw(peer) < 1 || raw(peer) > network_.nodes()) {
    return {StatusCode::kInvalid, "node " + std::to_string(raw(peer)) + " is not in the roster"};
  }
  if (header.size() > kHeaderBytesMax || payload.bytes.size() > kPayloadBytesMax) {
    return {StatusCode::kInvalid, "a message above the limits of size"};
  }
  const Message message{self_, epoch_, type, header, payload.bytes};
  network_.carry(self_.node, peer, deadline_ns, encode_frame({peer, message}));
  return Status::ok();
}

void SimulatedTransport::deliver(std::span<const std::byte> bytes) {
  const Result<Frame> frame = decode_frame(bytes);
  if (!frame) {
    ++network_.counts_.damaged;
    return;
  }
  CAIRN_CHECK(frame->to == self_.node);
  ++network_.counts_.delivered;
  if (handler_ != nullptr) handler_->on_message(frame->message);
}

void SimulatedTransport::tell_down(NodeId peer) {
  if (handler_ != nullptr) handler_->on_peer_down(peer);
}

void SimulatedTransport::forget() {
  handler_ = nullptr;
  self_.incarnation = Incarnation::kNone;
  epoch_ = Epoch::kNone;
}

}  // namespace cairn::cluster
