// SPDX-License-Identifier: Apache-2.0
#include "frontends/regions/part_fetch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_use.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/fetch_ahead.h"
#include "memory/buffer/store_demand.h"

namespace cairn {
namespace {

constexpr std::uint32_t kStretchBlocks = 64 * ((1 << 20) / kBlockBytes);
constexpr std::uint32_t kStretchesMax = 16;
static_assert(kStretchBlocks % kFetchBlocksMax == 0);
constexpr long kWaitNs = 1'000'000;
// A process at work begins with its next piece sooner than that.
constexpr unsigned kWaitsMax = 10;

}  // namespace

PartFetch::Place PartFetch::place_of(std::uint32_t block) const {
  const NodeMemory& memory = *actor_.memory;
  const auto number = static_cast<BlockNumber>(block);
  const BucketIndex bucket = memory.directory().find(object_, number);
  if (bucket == BucketIndex::kNone) return Place::kNowhere;
  const BlockDescriptor& descriptor = memory.block(bucket);
  return descriptor.valid_pages() == 0 && descriptor.holds(object_, number) ? Place::kComing
                                                                            : Place::kThere;
}

std::uint32_t PartFetch::blocks_most() const {
  const std::uint32_t slabs = actor_.memory->pool(TierId::kMemory).slab_count();
  return std::min(slabs / 2, kStretchesMax * kStretchBlocks);
}

int PartFetch::bring(std::uint32_t first, std::uint32_t end) {
  CAIRN_CHECK(first <= end);
  const std::uint32_t count = std::min(end - first, blocks_most());
  std::array<Stretch, kStretchesMax> stretches;
  std::uint32_t used = 0;
  for (std::uint32_t at = 0; at < count; at += kStretchBlocks, ++used)
    stretches[used] = {first + at, first + std::min(count, at + kStretchBlocks)};
  CAIRN_CHECK(used <= kStretchesMax);
  for (const Others others : {Others::kLeftAlone, Others::kAwaited}) {
    for (Stretch& stretch : std::span(stretches).first(used)) {
      if (const int error = bring_stretch(&stretch, others); error < 0) return error;
    }
  }
  return 0;
}

// Ends early where another process is at work, if the others are to be left alone.
int PartFetch::bring_stretch(Stretch* stretch, Others others) {
  while (stretch->next < stretch->end) {
    const Place place = place_of(stretch->next);
    if (place == Place::kThere) {
      ++stretch->next;
    } else if (place == Place::kComing) {
      if (others == Others::kLeftAlone) return 0;
      waits_ = 0;
      (void)lock_resident(actor_, object_, static_cast<BlockNumber>(stretch->next));
      // The process that was reading it has died, or failed: the program's own read brings it.
      if (place_of(stretch->next) == Place::kComing) ++stretch->next;
    } else if (others == Others::kLeftAlone || !await_others()) {
      if (const int error = bring_piece(stretch); error < 0) return error;
    }
  }
  return 0;
}

// False when the others have had time enough, and nothing came.
bool PartFetch::await_others() {
  if (waits_ == kWaitsMax) return false;
  ++waits_;
  const timespec pause{0, kWaitNs};
  sys::call(SYS_nanosleep, sys::word(&pause), 0);
  return true;
}

// One request at a time, so that nothing is kept open, and no signal waits, for longer than that.
int PartFetch::bring_piece(Stretch* stretch) {
  OpenFile* open = DescriptorTable::find(descriptor_);
  if (open == nullptr || open->object != object_) return -EBADF;
  FileUse use(*open);
  if (!use.begin()) return -EBADF;
  const StoreDemand demand(actor_);
  const unsigned count = std::min<std::uint32_t>(stretch->end - stretch->next, kFetchBlocksMax);
  const auto first = static_cast<BlockNumber>(stretch->next);
  const Fetched fetched = fetch_ahead(use.access(actor_), first, count, std::nullopt);
  if (fetched.error < 0) return fetched.error;
  if (fetched.has_no_room) return -ENOSPC;
  CAIRN_CHECK(fetched.blocks <= count);
  stretch->next += fetched.blocks;
  // Nobody can bring it: it is behind the end of the store, or never buffered.
  if (fetched.blocks == 0 && place_of(stretch->next) == Place::kNowhere) ++stretch->next;
  return 0;
}

}  // namespace cairn
