// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/region_identity.h"

#include <sys/stat.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/settled_times.h"

namespace cairn {
namespace {

std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
  // The finalizer of MurmurHash3 (Appleby, public domain).
  sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
  sum = (sum ^ (sum >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return sum ^ (sum >> 33);
}

// Two words of 64 bits each: no two regions of a node ever have the same.
ObjectKey key_of(const ObjectKey& file, const RegionIdentity& region) {
  std::uint64_t first = mixed(file.id.inode, region.name[0]);
  std::uint64_t second = mixed(static_cast<std::uint64_t>(file.id.birth_ns) ^ 1, region.name[1]);
  first = mixed(mixed(first, region.name[1]), region.bytes);
  second = mixed(mixed(second, file.id.inode), region.name[0]);
  // Regions of different versions are different objects: a process that is slow to keep one cannot
  // mix it with a later one.
  const std::uint64_t version[] = {
      region.version.size, static_cast<std::uint64_t>(region.version.mtime_ns),
      static_cast<std::uint64_t>(region.version.ctime_ns), region.version.cut_writes};
  for (const std::uint64_t word : version) {
    first = mixed(first, word);
    second = mixed(second, word ^ 1);
  }
  return {ObjectKind::kRegion, file.store, {first, static_cast<std::int64_t>(second)}};
}

}  // namespace

FileVersion FileVersion::of(const Object& file) {
  return {file.size.load(std::memory_order_acquire), file.mtime_ns.load(std::memory_order_acquire),
          file.ctime_ns.load(std::memory_order_acquire),
          file.cut_writes.load(std::memory_order_acquire)};
}

bool FileVersion::has_settled() const { return have_settled(mtime_ns, ctime_ns, wall_clock_ns()); }

bool may_be_written(const Object& file) {
  return file.writers.load(std::memory_order_seq_cst) != 0;
}

StoreStatus status_of_region(const ObjectTable& objects, const ObjectKey& file,
                             const RegionIdentity& region) {
  CAIRN_CHECK(file.kind != ObjectKind::kRegion);
  CAIRN_CHECK(region.bytes != 0);
  StoreStatus status;
  status.stamp.reclaims = objects.reclaims();
  status.key = key_of(file, region);
  status.stamp.size = region.bytes;
  status.stamp.mtime_ns = region.version.mtime_ns;
  // Together with what else tells its versions apart.
  status.stamp.ctime_ns = region.version.ctime_ns ^
                          static_cast<std::int64_t>(region.version.size << 1) ^
                          static_cast<std::int64_t>(std::uint64_t{region.version.cut_writes} << 40);
  status.mode = S_IFREG | S_IRUSR;
  status.links = 1;
  return status;
}

ObjectHandling handling_of_region(const Object& file) {
  ObjectHandling handling = file.handling();
  handling.mode = BufferingMode::kAsync;
  handling.pinned = false;
  handling.parts = 0;
  return handling;
}

}  // namespace cairn
