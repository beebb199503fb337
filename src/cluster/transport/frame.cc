// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport/frame.h"

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

#include <string>

#include "base/check.h"

namespace cairn::cluster {

namespace {

constexpr std::size_t kSummedHeadBytes = kFrameHeadBytes - sizeof(std::uint64_t);
static_assert(kHeaderBytesMax <= UINT16_MAX && kPayloadBytesMax <= UINT32_MAX);

// The head's own checksum covers the header too, which follows behind that checksum.
std::uint64_t head_checksum(std::span<const std::byte> head, std::span<const std::byte> header) {
  CAIRN_DCHECK(head.size() == kSummedHeadBytes);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, head.data(), head.size());
  XXH3_64bits_update(&state, header.data(), header.size());
  return XXH3_64bits_digest(&state);
}

Status damaged(const char* what) {
  return {StatusCode::kInvalid, std::string("a message with a damaged ") + what};
}

}  // namespace

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Bytes encode_frame(const Frame& frame) {
  const Message& message = frame.message;
  CAIRN_CHECK(message.header.size() <= kHeaderBytesMax);
  CAIRN_CHECK(message.payload.size() <= kPayloadBytesMax);
  ByteWriter writer;
  writer.put(kFrameMagic);
  writer.put(kProtocolVersion);
  writer.put(message.type);
  writer.put(message.from.node);
  writer.put(frame.to);
  writer.put(message.from.incarnation);
  writer.put(message.epoch);
  writer.put(static_cast<std::uint16_t>(message.header.size()));
  writer.put(std::uint16_t{0});
  writer.put(static_cast<std::uint32_t>(message.payload.size()));
  writer.put(checksum_of(message.payload));
  CAIRN_CHECK(writer.bytes().size() == kSummedHeadBytes);
  writer.put(head_checksum(writer.bytes(), message.header));
  writer.put_bytes(message.header);
  writer.put_bytes(message.payload);
  return writer.take();
}

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.take<std::uint32_t>();
  const auto version = reader.take<std::uint16_t>();
  if (!reader.is_whole()) return damaged("length");
  if (magic != kFrameMagic || version != kProtocolVersion) {
    return Status(StatusCode::kIncompatible, "a message of another protocol or version (" +
                                                 std::to_string(version) + "; this node speaks " +
                                                 std::to_string(kProtocolVersion) + ")");
  }
  Frame frame;
  frame.message.type = reader.take<MessageType>();
  frame.message.from.node = reader.take<NodeId>();
  frame.to = reader.take<NodeId>();
  frame.message.from.incarnation = reader.take<Incarnation>();
  frame.message.epoch = reader.take<Epoch>();
  const auto header_bytes = reader.take<std::uint16_t>();
  const auto zero = reader.take<std::uint16_t>();
  const auto payload_bytes = reader.take<std::uint32_t>();
  const auto payload_sum = reader.take<std::uint64_t>();
  const auto head_sum = reader.take<std::uint64_t>();
  frame.message.header = reader.take_bytes(header_bytes);
  frame.message.payload = reader.take_bytes(payload_bytes);
  if (!reader.is_at_end() || zero != 0) return damaged("length");
  if (head_sum != head_checksum(bytes.first(kSummedHeadBytes), frame.message.header)) {
    return damaged("header");
  }
  if (header_bytes > kHeaderBytesMax || payload_bytes > kPayloadBytesMax) return damaged("size");
  if (payload_sum != checksum_of(frame.message.payload)) return damaged("payload");
  return frame;
}

}  // namespace cairn::cluster
