// SPDX-License-Identifier: Apache-2.0
// Strong index types of the shared tables, and the sizes that everything else is derived from.
//
// Thread safety: values, no state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// Unit of placement, movement and eviction.
inline constexpr std::size_t kBlockBytes = 64 * 1024;
inline constexpr unsigned kBlockShift = 16;
// Unit of validity and dirtiness inside a block; also the alignment of direct I/O.
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr unsigned kPageShift = 12;
inline constexpr unsigned kPagesPerBlock = kBlockBytes / kPageBytes;
static_assert(kPagesPerBlock == 16, "page masks are 16 bits wide");

// Levels of the hierarchy that a node can have: the RAM tier and file tiers.
inline constexpr unsigned kTiersMax = 8;
// RAM and the swap area take a level each.
inline constexpr unsigned kFileTiersMax = kTiersMax - 2;

// Index of an object in the object table. 0 names no object.
enum class ObjectIndex : std::uint32_t { kNone = 0 };
// Index of a bucket descriptor over all tiers. 0 names no bucket.
enum class BucketIndex : std::uint32_t { kNone = 0 };
// Position of a block inside its object: byte offset / kBlockBytes.
enum class BlockNumber : std::uint32_t {};
// Index of an open description. 0 names none.
enum class DescriptionIndex : std::uint32_t { kNone = 0 };
// Index of a hold record. 0 names none.
enum class HoldIndex : std::uint32_t { kNone = 0 };
// Position of a tier in the hierarchy, fastest first.
enum class TierId : std::uint8_t { kMemory = 0 };
// The account that a bucket is charged to: a run of the node, a rule that reserves room for its
// files, or 0 for everything that belongs to none.
enum class AccountId : std::uint8_t { kNobody = 0 };

constexpr std::uint32_t raw(ObjectIndex index) { return static_cast<std::uint32_t>(index); }
constexpr std::uint32_t raw(BucketIndex index) { return static_cast<std::uint32_t>(index); }
constexpr std::uint32_t raw(BlockNumber number) { return static_cast<std::uint32_t>(number); }
constexpr std::uint32_t raw(DescriptionIndex index) { return static_cast<std::uint32_t>(index); }
constexpr std::uint32_t raw(HoldIndex index) { return static_cast<std::uint32_t>(index); }
constexpr std::uint32_t raw(TierId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t raw(AccountId id) { return static_cast<std::uint32_t>(id); }

// The bytes of a file behind this have no block number, and are read and written past the buffer.
inline constexpr std::uint64_t kBlockableBytes = std::uint64_t{UINT32_MAX} << kBlockShift;

// Requires: an offset below kBlockableBytes.
constexpr BlockNumber block_of(std::uint64_t offset) {
  return static_cast<BlockNumber>(offset >> kBlockShift);
}
constexpr std::uint64_t offset_of(BlockNumber number) {
  return static_cast<std::uint64_t>(number) << kBlockShift;
}

// Offsets past this are never buffered: block numbers are 32 bits wide (256 TiB).
inline constexpr std::uint64_t kOffsetMax = std::uint64_t{1} << (32 + kBlockShift);

// Bits of pages: all of a block.
inline constexpr std::uint16_t kAllPages = 0xffff;

// Bits of all pages that the byte range [begin, end) of a block touches. Requires: begin < end.
constexpr std::uint16_t pages_touched(std::size_t begin, std::size_t end) {
  const unsigned first = static_cast<unsigned>(begin >> kPageShift);
  const unsigned last = static_cast<unsigned>((end - 1) >> kPageShift);
  const std::uint32_t upto_last = (std::uint32_t{2} << last) - 1;
  return static_cast<std::uint16_t>(upto_last & ~((std::uint32_t{1} << first) - 1));
}

}  // namespace cairn
