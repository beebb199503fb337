// SPDX-License-Identifier: Apache-2.0
// The superblock of a pool file: whose buckets it holds, and how many. It is the first page; the
// buckets begin at kPoolDataOffset.
//
//   bytes     content
//   0 to 7    magic
//   8 to 11   version of the format
//   12 to 15  bytes of a bucket
//   16 to 31  identity of the node that made the file
//   32 to 35  number of the tier
//   36 to 39  zero
//   40 to 47  number of buckets
//   48 to 55  where the buckets begin
//   56 to 63  sum of all other bytes of the page, fnv1a
//
// The rest of the page is zero, and summed as well. Which block is in which bucket stands in the
// control segment alone: a pool file without its node says only whose it was.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/ids.h"
#include "base/status.h"
#include "memory/tiers/memory_shape.h"

namespace cairn {

inline constexpr std::uint64_t kPoolMagic = 0x31304c4f4f504343;  // "CCPOOL01", little endian
inline constexpr std::uint32_t kPoolVersion = 1;
// A bucket's length, so that buckets lie as devices like it.
inline constexpr std::uint64_t kPoolDataOffset = kBlockBytes;

// What a node expects of a pool file.
struct PoolIdentity {
  NodeId node;
  std::uint32_t tier = 0;
  std::uint64_t bucket_count = 0;

  std::uint64_t data_bytes() const { return bucket_count * kBlockBytes; }
  std::uint64_t file_bytes() const { return kPoolDataOffset + data_bytes(); }
  friend bool operator==(const PoolIdentity&, const PoolIdentity&) = default;
};

struct PoolSuperblock {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t bucket_bytes;
  NodeId node;
  std::uint32_t tier;
  std::uint32_t reserved;
  std::uint64_t bucket_count;
  std::uint64_t data_offset;
  std::uint64_t sum;
};
static_assert(sizeof(PoolSuperblock) == 64 && offsetof(PoolSuperblock, sum) == 56, "as drawn");
static_assert(std::is_trivially_copyable_v<PoolSuperblock>);

// The page as it is read and written: aligned for direct I/O.
struct alignas(kPageBytes) PoolPage {
  std::array<std::byte, kPageBytes> bytes{};
};
static_assert(sizeof(PoolPage) == kPageBytes);

PoolPage make_superblock(const PoolIdentity& identity);

// Whether the page is the superblock that make_superblock(expected) makes. Errors: kInvalid when it
// is none or is damaged; kIncompatible, with what differs, when its version, node, tier or size is
// another.
Status check_superblock(const PoolPage& page, const PoolIdentity& expected);

}  // namespace cairn
