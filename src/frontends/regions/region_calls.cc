// SPDX-License-Identifier: Apache-2.0
#include "cairn/region_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/libc/hook.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// A file system may not tell two changes apart that follow each other sooner. (Ticks of the
// kernel's clock are 10 ms at most; FAT and some servers keep whole seconds, whose times show it.)
constexpr std::int64_t kTickNs = 50'000'000;
constexpr std::int64_t kWholeSecond = kNanosPerSecond;

CairnFileVersion version_of(const Object& file) {
  return {file.size.load(std::memory_order_acquire), file.mtime_ns.load(std::memory_order_acquire),
          file.ctime_ns.load(std::memory_order_acquire)};
}

bool is_of(const Object& file, const CairnFileVersion& version) {
  const CairnFileVersion now = version_of(file);
  return now.size == version.size && now.mtime_ns == version.mtime_ns &&
         now.ctime_ns == version.ctime_ns;
}

bool has_settled(const CairnFileVersion& version) {
  const std::int64_t last = std::max(version.mtime_ns, version.ctime_ns);
  const std::int64_t tick = version.mtime_ns % kWholeSecond == 0 ? 2 * kWholeSecond : kTickNs;
  return last + tick < wall_clock_ns();
}

std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
  // The finalizer of MurmurHash3 (Appleby, public domain).
  sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
  sum = (sum ^ (sum >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return sum ^ (sum >> 33);
}

// Two words of 64 bits each: no two regions of a node ever have the same.
ObjectKey key_of(const ObjectKey& file, const CairnRegion& region) {
  std::uint64_t first = mixed(file.id.inode, region.name[0]);
  std::uint64_t second = mixed(static_cast<std::uint64_t>(file.id.birth_ns) ^ 1, region.name[1]);
  first = mixed(mixed(first, region.name[1]), region.bytes);
  second = mixed(mixed(second, file.id.inode), region.name[0]);
  // Regions of different versions are different objects: a process that is slow to keep one cannot
  // mix it with a later one.
  const std::uint64_t version[] = {region.version.size,
                                   static_cast<std::uint64_t>(region.version.mtime_ns),
                                   static_cast<std::uint64_t>(region.version.ctime_ns)};
  for (const std::uint64_t word : version) {
    first = mixed(first, word);
    second = mixed(second, word ^ 1);
  }
  return {ObjectKind::kRegion, file.store, {first, static_cast<std::int64_t>(second)}};
}

// The record of the file; null where the kernel has a say in what it contains.
const Object* file_of(Actor* actor, int descriptor) {
  const OpenFile* open = actor == nullptr ? nullptr : DescriptorTable::find(descriptor);
  if (open == nullptr) return nullptr;
  const Object& file = actor->object(open->object);
  CAIRN_CHECK(file.kind() != ObjectKind::kRegion);
  return file.through.load(std::memory_order_seq_cst) == 0 ? &file : nullptr;
}

StoreStatus status_of(const Actor& actor, const Object& file, const CairnRegion& region) {
  StoreStatus status;
  const CairnFileVersion& version = region.version;
  status.stamp.reclaims = actor.memory->objects().reclaims();
  status.key = key_of(file.key(), region);
  status.stamp.size = region.bytes;
  status.stamp.mtime_ns = version.mtime_ns;
  // Together with the size of the file.
  status.stamp.ctime_ns = version.ctime_ns ^ static_cast<std::int64_t>(version.size << 1);
  status.mode = S_IFREG | S_IRUSR;
  status.links = 1;
  return status;
}

// The region's object, held so that the service gives it back when this process dies.
class OpenRegion {
 public:
  OpenRegion(Actor& actor, const StoreStatus& status, RegionBacking& backing)
      : actor_(actor), backing_(backing) {
    index_ = open_object(actor, backing, status, false);
    if (index_ == ObjectIndex::kNone) return;
    DescriptionTable& descriptions = actor.memory->descriptions();
    description_ = descriptions.create(index_, O_RDONLY);
    if (description_ != DescriptionIndex::kNone)
      hold_ = descriptions.hold(description_, actor.self, HoldKind::kDescription);
    if (hold_ == HoldIndex::kNone) give_up();
    CAIRN_CHECK(!is_open() || access().object().kind() == ObjectKind::kRegion);
  }
  ~OpenRegion() {
    if (!is_open()) return;
    DescriptionTable& descriptions = actor_.memory->descriptions();
    if (!descriptions.release(hold_, actor_.self).last) return;
    (void)close_object(access(), false);
    descriptions.destroy(description_);
  }
  OpenRegion(const OpenRegion&) = delete;
  OpenRegion& operator=(const OpenRegion&) = delete;

  bool is_open() const { return index_ != ObjectIndex::kNone; }
  ObjectAccess access() { return {actor_, index_, backing_, nobody_}; }
  bool copy(const CairnRegionPart& part) {
    return read_object(access(), part.offset, part.to, part.bytes) ==
           static_cast<ssize_t>(part.bytes);
  }

 private:
  void give_up() {
    if (description_ != DescriptionIndex::kNone)
      actor_.memory->descriptions().destroy(description_);
    (void)close_object(access(), false);
    index_ = ObjectIndex::kNone;
  }

  Actor& actor_;
  RegionBacking& backing_;
  NoService nobody_;
  ObjectIndex index_ = ObjectIndex::kNone;
  DescriptionIndex description_ = DescriptionIndex::kNone;
  HoldIndex hold_ = HoldIndex::kNone;
};

class UncountedReads {
 public:
  explicit UncountedReads(Actor& actor) : actor_(actor), counters_(actor.counters) {
    actor.counters = &unread_;
  }
  ~UncountedReads() { actor_.counters = counters_; }
  UncountedReads(const UncountedReads&) = delete;
  UncountedReads& operator=(const UncountedReads&) = delete;

 private:
  Actor& actor_;
  CounterShard* const counters_;
  CounterShard unread_{};
};

int version_of_file(int descriptor, CairnFileVersion* version) {
  const Object* file = file_of(Session::instance().actor_if_any(), descriptor);
  if (file == nullptr) return -ENOTSUP;
  *version = version_of(*file);
  return 0;
}

int read_region(const CairnRegion& region, std::span<const CairnRegionPart> parts) {
  Actor* actor = Session::instance().actor_if_any();
  const Object* file = file_of(actor, region.descriptor);
  if (file == nullptr || region.bytes == 0) return -ENOTSUP;
  if (!is_of(*file, region.version)) return -ESTALE;
  const StoreStatus status = status_of(*actor, *file, region);
  if (actor->memory->objects().find(status.key) == ObjectIndex::kNone) return -ENODATA;
  RegionBacking nothing(status, nullptr);
  OpenRegion open(*actor, status, nothing);
  if (!open.is_open()) return -ENODATA;
  for (const CairnRegionPart& part : parts) {
    if (!open.copy(part)) return -ENODATA;
    actor->count(Counter::kArrayBytes, part.bytes);
  }
  return 0;
}

int keep_region(const CairnRegion& region, std::byte* bytes) {
  Actor* actor = Session::instance().actor_if_any();
  const Object* file = file_of(actor, region.descriptor);
  if (file == nullptr || region.bytes == 0) return -ENOTSUP;
  if (!is_of(*file, region.version)) return -ESTALE;
  if (!has_settled(region.version)) return -EAGAIN;
  const StoreStatus status = status_of(*actor, *file, region);
  RegionBacking made(status, bytes);
  OpenRegion open(*actor, status, made);
  if (!open.is_open()) return -ENOSPC;
  open.access().object().set_handling(file->handling());
  // A read from the bytes into themselves: it brings their blocks into the tiers on its way. The
  // program has not asked for that, nor has the store given anything.
  const UncountedReads uncounted(*actor);
  return open.copy({0, region.bytes, bytes}) ? 0 : -ENOSPC;
}

}  // namespace
}  // namespace cairn

extern "C" {

__attribute__((visibility("default"))) int cairn_region_version(int descriptor,
                                                                CairnFileVersion* version) {
  const cairn::ErrnoKeeper keeper;
  return cairn::version_of_file(descriptor, version);
}

__attribute__((visibility("default"))) int cairn_region_read(const CairnRegion* region,
                                                             const CairnRegionPart* parts,
                                                             size_t count) {
  const cairn::ErrnoKeeper keeper;
  return cairn::read_region(*region, {parts, count});
}

__attribute__((visibility("default"))) int cairn_region_keep(const CairnRegion* region,
                                                             void* bytes) {
  const cairn::ErrnoKeeper keeper;
  return cairn::keep_region(*region, static_cast<std::byte*>(bytes));
}
}
