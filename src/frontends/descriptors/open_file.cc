// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/open_file.h"

#include <fcntl.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace cairn {
namespace {

// Many programs announce sequential reads before they read (cat). Such advice bears fruit at the
// first miss, which wakes the service by itself. Later it changes what the service fetches at once.
// The service does nothing about the advices that are not named here.
bool is_urgent_advice(const OpenFile& file, int advice) {
  switch (advice) {
    case POSIX_FADV_WILLNEED:
    case POSIX_FADV_RANDOM:
      return true;
    case POSIX_FADV_NORMAL:
    case POSIX_FADV_SEQUENTIAL:
      return file.description->offset.load(std::memory_order_relaxed) != 0;
    default:
      return false;
  }
}

}  // namespace

std::uint32_t OpenFile::flags_in_kernel() const {
  const std::uint32_t known =
      description->flags.load(std::memory_order_relaxed) & ~(kOffsetInKernel | kHasOwnLocks);
  const int result = sys::fcntl(shared_fd(), F_GETFL);
  if (result < 0) return known;
  const auto kernels = static_cast<std::uint32_t>(result);
  const std::uint32_t withheld = twin_fd >= 0 ? 0 : withheld_flags(kSettableFlags, may_write);
  const std::uint32_t followed = kSettableFlags & ~withheld;
  // The private descriptor has none of the withheld ones, unless another sharer gave it one. That
  // holds for all, also when the next store takes it away (PosixBacking::note_shared()).
  const std::uint32_t given = kernels & withheld;
  if (given != 0) description->flags.fetch_or(given);
  return (known & ~followed) | (kernels & kSettableFlags);
}

void tell_about(Actor& actor, OpenFile& file, AccessKind kind, const Advice& advice) {
  const NodeMemory& memory = *actor.memory;
  const EventBoard& board = memory.event_board();
  const EventLevel level = kind == AccessKind::kSync ? EventLevel::kWaits
                           : file.may_read           ? EventLevel::kReads
                                                     : EventLevel::kWrites;
  if (!board.wants(level)) return;
  CAIRN_DCHECK(file.object != ObjectIndex::kNone && file.index != DescriptionIndex::kNone);
  AccessEvent event;
  event.offset = advice.offset;
  event.cycles = cycle_count();
  event.object = file.object;
  event.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(advice.length, UINT32_MAX));
  event.stream = file.index;
  event.descriptor = file.private_fd();
  event.kind = kind;
  event.advice = static_cast<std::uint8_t>(advice.advice);
  const Object& object = actor.object(file.object);
  if (kind == AccessKind::kOpen) {
    event.is_urgent = board.opens_are_urgent.load(std::memory_order_relaxed) != 0 ||
                      object.handling().prefetch == PrefetchHint::kWillNeed;
  } else if (kind == AccessKind::kClose) {
    event.is_urgent = object.is_marked(kMarkFetchedFrom);
  } else if (kind == AccessKind::kAdvice) {
    event.is_urgent = is_urgent_advice(file, advice.advice);
  }
  event.owner = actor.self;
  memory.tell(event);
}

}  // namespace cairn
