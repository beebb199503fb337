// SPDX-License-Identifier: Apache-2.0
// A message as it travels: a fixed head with two checksums, then header and payload.
//
//   offset  bytes
//        0  4      magic "CRNf"
//        4  2      version of the protocol, 1
//        6  2      type
//        8  4      sending node
//       12  4      receiving node
//       16  8      incarnation of the sender
//       24  8      epoch of the sender
//       32  2      bytes of the header
//       34  2      zero
//       36  4      bytes of the payload
//       40  8      checksum of the payload (XXH3, 64 bits, seed 0)
//       48  8      checksum of bytes 0 to 47 and of the header (the same)
//       56         header, payload
//
// The receiving node is in it so that a frame which a stale connection brings to a wrong node is
// found out. The payload's checksum is looked at after its last byte has arrived and before
// anybody may read it: a transfer that was cancelled may still write into a buffer
// (openucx/ucx #11918).
//
// Thread safety: pure functions. Ownership: a Frame borrows the bytes that it was read from.
#pragma once

#include "cluster/transport/byte_codec.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

inline constexpr std::uint32_t kFrameMagic = 0x664e5243;  // "CRNf"
inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kFrameHeadBytes = 56;

struct Frame {
  NodeId to{};
  Message message;
};

// Requires: header and payload within their limits.
Bytes encode_frame(const Frame& frame);
// Errors: kIncompatible for another protocol or version; kInvalid for damage, naming the field.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

// The checksum that both have.
std::uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace cairn::cluster
