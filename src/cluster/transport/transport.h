// SPDX-License-Identifier: Apache-2.0
// Messages between the services of a cluster: the one interface, whatever carries them.
//
//   sender                          transport                            receiver
//   send(peer, type, ...)  ----->   may delay, drop, repeat, reorder
//                                   never changes a byte unnoticed  -->  on_message(), at most
//                                   (checksums of header and payload)    until the deadline
//                          <-----   on_peer_down(peer): a hint
//
// What holds, and all that holds:
//   1. A delivered message is one that was sent, byte for byte: one with damage is dropped.
//   2. A message may be lost, come twice, or come behind one that was sent later. A caller that
//      needs an answer has a deadline and asks again.
//   3. Nothing is delivered behind its deadline, by the sender's clock.
//   4. on_peer_down() says that the peer probably cannot be reached. It is a reason to suspect it
//      and none to declare it dead: silence and errors both lie (the lease decides, membership).
//   5. send() never calls a handler; handlers are called by progress() alone, one at a time.
//
// Example:
//   transport.set_handler(&handler);
//   transport.send(peer, MessageType{7}, header, payload, now_ns + 1'000'000'000);
//   while (transport.progress() > 0) {}
//
// Thread safety: none: one thread owns a transport, and its handler runs on it.
// Units: times are nanoseconds of the monotonic clock of the node that says them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/cluster_ids.h"
#include "base/status.h"

namespace cairn::cluster {

// The room that a message is for is the upper byte, its kind within that room the lower.
enum class MessageType : std::uint16_t {};
constexpr std::uint16_t raw(MessageType type) { return static_cast<std::uint16_t>(type); }

// A header is control data of bounded size; a payload is bulk data, sent in chunks by its caller.
inline constexpr std::size_t kHeaderBytesMax = 256;
inline constexpr std::size_t kPayloadBytesMax = std::size_t{1} << 20;

// Bytes that a transport may read until it lets go of `owner`. A caller that reuses buffers has the
// owner's deleter give the buffer back: so it is back only when no transfer, cancelled ones
// included, can read it any more. Without an owner, send() copies the bytes.
struct Payload {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// What arrives. The spans are valid during the call.
struct Message {
  NodeLife from;
  Epoch epoch{};  // the sender's view when it sent this
  MessageType type{};
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
};

class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void on_message(const Message& message) = 0;
  virtual void on_peer_down(NodeId peer) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual NodeId self() const = 0;
  // The handler outlives the transport or is replaced by null before its end.
  virtual void set_handler(MessageHandler* handler) = 0;
  // Every message from now on says that this life of the node has sent it, in that view.
  virtual void set_identity(Incarnation incarnation, Epoch epoch) = 0;
  // A node may send to itself. The header is copied.
  // Errors: kInvalid for a peer outside of the roster or bytes above the limits; kExhausted when
  // too much is under way to the peer; kUnavailable when it is known to be unreachable. Ok says
  // that the message may arrive, no more.
  virtual Status send(NodeId peer, MessageType type, std::span<const std::byte> header,
                      Payload payload, std::int64_t deadline_ns) = 0;
  // Delivers what has arrived. Returns: how many calls of the handler that were.
  virtual int progress() = 0;
};

}  // namespace cairn::cluster
