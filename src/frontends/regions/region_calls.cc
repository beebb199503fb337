// SPDX-License-Identifier: Apache-2.0
#include "cairn/region_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "base/check.h"
#include "base/cycle_clock.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/file_use.h"
#include "frontends/libc/hook.h"
#include "frontends/regions/part_fetch.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/region_identity.h"
#include "memory/buffer/region_keep.h"
#include "memory/buffer/uncounted_reads.h"

namespace cairn {
namespace {

FileVersion version_in(const CairnFileVersion& version) {
  return {version.size, version.mtime_ns, version.ctime_ns,
          static_cast<std::uint32_t>(version.cut_writes)};
}

// The record of the file; null where the kernel has a say in what it contains.
const Object* file_of(Actor* actor, int descriptor) {
  const OpenFile* open = actor == nullptr ? nullptr : DescriptorTable::find(descriptor);
  if (open == nullptr) return nullptr;
  const Object& file = actor->object(open->object);
  CAIRN_CHECK(file.kind() != ObjectKind::kRegion);
  return file.through.load(std::memory_order_seq_cst) == 0 ? &file : nullptr;
}

// 0, or why the region is not the file's.
int check_version(const Object& file, const CairnRegion& region) {
  if (region.bytes == 0 || may_be_written(file)) return -ENOTSUP;
  return FileVersion::of(file) == version_in(region.version) ? 0 : -ESTALE;
}

StoreStatus status_of(const Actor& actor, const Object& file, const CairnRegion& region) {
  return status_of_region(
      actor.memory->objects(), file.key(),
      {{region.name[0], region.name[1]}, region.bytes, version_in(region.version)});
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

int version_of_file(int descriptor, CairnFileVersion* version) {
  const Object* file = file_of(Session::instance().actor_if_any(), descriptor);
  if (file == nullptr) return -ENOTSUP;
  const FileVersion now = FileVersion::of(*file);
  *version = {now.size, now.mtime_ns, now.ctime_ns, now.cut_writes, now.has_settled() ? 0U : 1U};
  return 0;
}

int read_region(const CairnRegion& region, std::span<const CairnRegionPart> parts) {
  Actor* actor = Session::instance().actor_if_any();
  const Object* file = file_of(actor, region.descriptor);
  if (file == nullptr) return -ENOTSUP;
  if (const int error = check_version(*file, region); error < 0) return error;
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

int keep_region(const CairnRegion& region, const std::byte* bytes) {
  Actor* actor = Session::instance().actor_if_any();
  const Object* file = file_of(actor, region.descriptor);
  if (file == nullptr) return -ENOTSUP;
  if (const int error = check_version(*file, region); error < 0) return error;
  // Not whether it has settled by now: the bytes were read before.
  if (region.version.is_fresh != 0) return -EAGAIN;
  const StoreStatus status = status_of(*actor, *file, region);
  RegionBacking made(status, bytes);
  OpenRegion open(*actor, status, made);
  if (!open.is_open()) return -ENOSPC;
  open.access().object().set_handling(handling_of_region(*file));
  // The program has not asked for these reads, nor has the store given anything.
  const UncountedReads uncounted(*actor);
  return keep_whole_region(open.access()) ? 0 : -ENOSPC;
}

int tell_of_array(const CairnArrayRead& read) {
  using protocol::ArrayReadMessage;
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (file_of(actor, read.descriptor) == nullptr || read.dimensions == 0 ||
      read.dimensions > ArrayReadMessage::kDimensionsMax)
    return -ENOTSUP;
  ArrayReadMessage message;
  message.object = raw(DescriptorTable::find(read.descriptor)->object);
  message.descriptor = read.descriptor;
  message.dimensions = read.dimensions;
  message.was_kept = read.was_kept != 0 ? 1 : 0;
  message.cell_bytes = read.cell_bytes;
  message.offset = read.offset;
  for (std::uint32_t at = 0; at < read.dimensions; ++at) {
    message.shape[at] = read.shape[at];
    message.first[at] = read.first[at];
    message.count[at] = read.count[at];
  }
  return session.notify(message) ? 0 : -EAGAIN;
}

int tell_of_packed(const CairnPackedRead& read) {
  using protocol::PackedReadMessage;
  Session& session = Session::instance();
  if (file_of(session.actor_if_any(), read.descriptor) == nullptr || read.dimensions == 0 ||
      read.dimensions > PackedReadMessage::kDimensionsMax ||
      read.filter_count > PackedReadMessage::kFiltersMax)
    return -ENOTSUP;
  PackedReadMessage message;
  message.object = raw(DescriptorTable::find(read.descriptor)->object);
  message.descriptor = read.descriptor;
  message.dimensions = read.dimensions;
  std::copy_n(read.filters, read.filter_count, message.filters);
  message.cell_bytes = read.cell_bytes;
  std::copy_n(read.token, std::size(read.token), message.token);
  std::copy_n(read.shape, read.dimensions, message.shape);
  std::copy_n(read.chunk, read.dimensions, message.chunk);
  std::copy_n(read.first, read.dimensions, message.first);
  std::copy_n(read.count, read.dimensions, message.count);
  return session.notify(message) ? 0 : -EAGAIN;
}

int grid_of_array(int descriptor, const ArrayName& name, std::uint32_t dimensions,
                  std::uint64_t* numbers) {
  const OpenFile* open = DescriptorTable::find(descriptor);
  const Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr || open == nullptr) return -ENOTSUP;
  GridNumbers grid;
  const bool is_known = actor->memory->array_board().find({open->object, name.words}, &grid);
  if (!is_known || grid.dimensions != dimensions) return -ENODATA;
  for (const GridNumbers::Row& row : grid.rows)
    numbers = std::copy_n(row.begin(), dimensions, numbers);
  return 0;
}

int fetch_part(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  Actor* actor = Session::instance().actor_if_any();
  OpenFile* open = actor == nullptr ? nullptr : DescriptorTable::find(descriptor);
  if (open == nullptr || actor->object(open->object).through.load() != 0) return -ENOTSUP;
  if (bytes == 0 || offset >= kBlockableBytes || bytes > kBlockableBytes - offset) return -ENOTSUP;
  const std::uint64_t started = cycle_count();
  PartFetch fetch(*actor, open->object, descriptor);
  const int error = fetch.bring(raw(block_of(offset)), raw(block_of(offset + bytes - 1)) + 1);
  const std::uint64_t cycles = cycle_count() - started;
  actor->count(Counter::kIoCycles, cycles);
  actor->met = AccessKind::kMiss;
  FileUse use(*open);
  note_wait(use.access(*actor), 0, cycles);
  return error;
}

void copy_end_of(const char* name, protocol::ArrayNewsMessage* message) {
  constexpr std::size_t kBytes = sizeof message->name;
  const std::size_t length = strlen(name);
  const bool is_cut = length >= kBytes;
  snprintf(message->name, kBytes, "%s%s", is_cut ? "..." : "",
           is_cut ? name + length - (kBytes - sizeof "...") : name);
}

int tell_news(const CairnArrayNews& news) {
  using protocol::ArrayNewsMessage;
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  const OpenFile* open = actor == nullptr ? nullptr : DescriptorTable::find(news.descriptor);
  if (open == nullptr || news.dimensions > ArrayNewsMessage::kDimensionsMax ||
      news.reason_count > ArrayNewsMessage::kReasonsMax)
    return -ENOTSUP;
  ArrayNewsMessage message;
  message.object = raw(open->object);
  message.descriptor = news.descriptor;
  message.dimensions = news.dimensions;
  message.has_chunks = news.chunk != nullptr ? 1 : 0;
  message.layout = news.layout;
  message.unfit = news.unfit;
  message.cell_bytes = news.cell_bytes;
  message.offset = news.offset;
  std::copy_n(news.token, std::size(news.token), message.token);
  if (news.dimensions != 0) std::copy_n(news.shape, news.dimensions, message.shape);
  if (news.chunk != nullptr) std::copy_n(news.chunk, news.dimensions, message.chunk);
  std::copy_n(news.filters, std::min<std::size_t>(news.filter_count, ArrayNewsMessage::kFiltersMax),
              message.filters);
  copy_end_of(news.name, &message);
  message.served_bytes = news.served_bytes;
  const auto counted = [](std::uint64_t reads) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(reads, UINT32_MAX));
  };
  message.served_reads = counted(news.served_reads);
  std::transform(news.left_reads, news.left_reads + news.reason_count, message.left_reads, counted);
  return session.notify(message) ? 0 : -EAGAIN;
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
                                                             const void* bytes) {
  const cairn::ErrnoKeeper keeper;
  return cairn::keep_region(*region, static_cast<const std::byte*>(bytes));
}

__attribute__((visibility("default"))) int cairn_array_read(const CairnArrayRead* read) {
  const cairn::ErrnoKeeper keeper;
  return cairn::tell_of_array(*read);
}

__attribute__((visibility("default"))) int cairn_packed_read(const CairnPackedRead* read) {
  const cairn::ErrnoKeeper keeper;
  return cairn::tell_of_packed(*read);
}

__attribute__((visibility("default"))) int cairn_array_news(const CairnArrayNews* news) {
  const cairn::ErrnoKeeper keeper;
  return cairn::tell_news(*news);
}

__attribute__((visibility("default"))) int cairn_array_fetch(int descriptor, uint64_t offset,
                                                             uint64_t bytes) {
  const cairn::ErrnoKeeper keeper;
  return cairn::fetch_part(descriptor, offset, bytes);
}

__attribute__((visibility("default"))) int cairn_array_grid(int descriptor, const uint64_t name[2],
                                                            uint32_t dimensions,
                                                            uint64_t* numbers) {
  const cairn::ErrnoKeeper keeper;
  return cairn::grid_of_array(descriptor, {{}, {name[0], name[1]}}, dimensions, numbers);
}
}
