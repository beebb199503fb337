// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/pool_format.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fnv1a.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little, "as the format says");

PoolSuperblock superblock_in(const PoolPage& page) {
  PoolSuperblock superblock;
  std::memcpy(&superblock, page.bytes.data(), sizeof superblock);
  return superblock;
}

// The sum that the page has to bear: its own place counts as zeros.
std::uint64_t sum_of(const PoolPage& page) {
  std::array<std::byte, kPageBytes> bytes = page.bytes;
  std::memset(bytes.data() + offsetof(PoolSuperblock, sum), 0, sizeof(PoolSuperblock::sum));
  return fnv1a(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Status incompatible(const std::string& what) { return {StatusCode::kIncompatible, what}; }

}  // namespace

PoolPage make_superblock(const PoolIdentity& identity) {
  PoolSuperblock superblock{.magic = kPoolMagic,
                            .version = kPoolVersion,
                            .bucket_bytes = kBlockBytes,
                            .node = identity.node,
                            .tier = identity.tier,
                            .reserved = 0,
                            .bucket_count = identity.bucket_count,
                            .data_offset = kPoolDataOffset,
                            .sum = 0};
  PoolPage page;
  std::memcpy(page.bytes.data(), &superblock, sizeof superblock);
  superblock.sum = sum_of(page);
  std::memcpy(page.bytes.data(), &superblock, sizeof superblock);
  return page;
}

Status check_superblock(const PoolPage& page, const PoolIdentity& expected) {
  const PoolSuperblock found = superblock_in(page);
  if (found.magic != kPoolMagic) return {StatusCode::kInvalid, "is no pool file"};
  // Before the sum: another version may keep that elsewhere.
  if (found.version != kPoolVersion) {
    return incompatible("has version " + std::to_string(found.version) +
                        " where this Cairn writes " + std::to_string(kPoolVersion));
  }
  if (found.sum != sum_of(page)) return {StatusCode::kInvalid, "is damaged: its sum is wrong"};
  if (found.bucket_bytes != kBlockBytes || found.data_offset != kPoolDataOffset)
    return incompatible("has buckets of another size or at another place");
  if (found.node != expected.node) return incompatible("belongs to another node");
  if (found.tier != expected.tier) {
    return incompatible("is tier " + std::to_string(found.tier) + " and not tier " +
                        std::to_string(expected.tier));
  }
  if (found.bucket_count != expected.bucket_count) {
    return incompatible("has " + std::to_string(found.bucket_count) + " buckets and not " +
                        std::to_string(expected.bucket_count));
  }
  return Status::ok();
}

}  // namespace cairn
