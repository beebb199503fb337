// SPDX-License-Identifier: Apache-2.0
// Reading: the hit path first, then everything that may happen instead.
#include <errno.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/cycle_clock.h"
#include "base/system_call.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/file_tier_io.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/read_hit.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// One block's part of a read.
struct ReadPart {
  BlockNumber number;
  std::size_t begin;  // inside the block
  std::size_t end;
  std::byte* out;

  std::size_t length() const { return end - begin; }
  std::uint64_t offset() const { return offset_of(number) + begin; }
};

// The block's part of the read if it is resident and at rest, wherever the directory has it.
bool read_resident(Actor& actor, ObjectIndex object, const ReadPart& part,
                   std::uint32_t weight = 1) {
  const NodeMemory& memory = *actor.memory;
  const BucketIndex bucket = memory.directory().find(object, part.number);
  const BlockRead read{object, raw(part.number), part.begin, part.length(), part.out};
  if (!copy_resident(memory, bucket, read)) return false;
  note_access(memory, bucket, weight);
  return true;
}

// The result of a copy into the application's memory that lacks the last `missing` bytes.
ssize_t copied_of(std::size_t length, std::size_t missing) {
  return missing < length ? static_cast<ssize_t>(length - missing) : -EFAULT;
}

// Reads from the block where it is, without asking anybody.
ssize_t read_in_place(const ObjectAccess& access, const LockedBlock& block, const ReadPart& part) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const TierPlace place = memory.place_of(block.bucket(), part.begin, part.length());
  if (const std::byte* bytes = place.address(); bytes != nullptr)
    return copied_of(part.length(), copy_from_shared(part.out, bytes, part.length()));
  std::byte* bounce = actor.bounce_blocks();
  if (bounce == nullptr) return -ENOMEM;
  const TierId tier = memory.tier_of(block.bucket());
  memory.device_board().note_read(tier, monotonic_coarse_ms());
  const std::size_t first = part.begin / kPageBytes * kPageBytes;
  const std::size_t past = (part.end + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int error = memory.place_of(block.bucket(), first, past - first).read(bounce);
  if (error < 0) return error;
  actor.note_met(AccessKind::kBelow);
  actor.count(hit_bytes_counter(tier), part.length());
  return copied_of(part.length(),
                   user_copy(part.out, bounce + (part.begin - first), part.length()));
}

// From the store by way of our own memory: the application's is not all there, and as much of it is
// filled as there is.
[[gnu::noinline]] ssize_t read_store_by_pages(const ObjectAccess& access, std::uint64_t offset,
                                              std::byte* out, std::size_t length) {
  std::array<std::byte, kPageBytes> page;
  std::size_t done = 0;
  while (done < length) {
    const std::size_t take = std::min(length - done, page.size());
    const ssize_t got = read_store(access, offset + done, page.data(), take);
    if (got < 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    const std::size_t missing = user_copy(out + done, page.data(), take);
    done += take - missing;
    if (missing > 0) return done > 0 ? static_cast<ssize_t>(done) : -EFAULT;
  }
  return static_cast<ssize_t>(done);
}

// No bucket for the block: its truth is the backing store.
ssize_t read_through(const ObjectAccess& access, const ReadPart& part) {
  // Within the file's size what the store has not got yet reads as zeros.
  const ssize_t got = read_store(access, part.offset(), part.out, part.length());
  if (got == -EFAULT) return read_store_by_pages(access, part.offset(), part.out, part.length());
  if (got < 0) return got;
  access.actor.note_met(AccessKind::kMiss);
  access.actor.count(Counter::kMissBytes, part.length());
  return static_cast<ssize_t>(part.length());
}

// The tier does not give the part's bytes: they come from the store if it has all of them, and else
// page by page (-EAGAIN).
[[gnu::noinline]] ssize_t read_despite_tier(const ObjectAccess& access, LockedBlock& block,
                                            const ReadPart& part) {
  return give_up_clean_pages(access.actor, block) ? read_through(access, part) : -EAGAIN;
}

// A fresh block in a file tier, because the tiers above are full: it is filled there for the next
// reader, and read at once.
ssize_t read_into_file_tier(const ObjectAccess& access, LockedBlock& block, const ReadPart& part) {
  Actor& actor = access.actor;
  const int error = fill_in_file_tier(access, block, part.number);
  if (error < 0) {
    discard_unfilled(actor, block);
    // The device of the tier may have failed; the store has everything.
    return read_through(access, part);
  }
  actor.note_met(AccessKind::kMiss);
  actor.count(Counter::kMissBytes, part.length());
  return copied_of(part.length(),
                   user_copy(part.out, actor.bounce_blocks() + part.begin, part.length()));
}

// A miss brings in the whole block, as far as the file goes: the neighbours are wanted next, and on
// a disk the seek costs more than the block.
std::uint16_t pages_to_fill(const ObjectAccess& access, const LockedBlock& block,
                            const ReadPart& part) {
  const std::uint64_t size = access.object().size.load(std::memory_order_acquire);
  const std::uint64_t start = offset_of(part.number);
  const std::size_t room = block.descriptor().bucket_bytes();
  std::size_t end = size <= start ? part.end : std::min<std::uint64_t>(size - start, room);
  return pages_touched(0, std::max(end, part.end));
}

[[gnu::noinline]] ssize_t read_missing(const ObjectAccess& access, const ReadPart& part,
                                       unsigned blocks_wanted) {
  Actor& actor = access.actor;
  const std::uint64_t size = access.object().size.load(std::memory_order_acquire);
  const std::uint64_t start = offset_of(part.number);
  const std::size_t wanted_end =
      size <= start ? part.end : std::min<std::uint64_t>(size - start, kBlockBytes);
  // A block that moves into memory is counted where it was found.
  const BucketIndex found = actor.memory->directory().find(access.index, part.number);
  const TierId source =
      found == BucketIndex::kNone ? TierId::kMemory : actor.memory->tier_of(found);
  LockedBlock block = lock_or_place(access, {.number = part.number,
                                             .end = std::max(part.end, wanted_end),
                                             .reason = PlacementReason::kRead,
                                             .blocks_wanted = blocks_wanted,
                                             .promotion = Promotion::kIfWorthwhile});
  if (!block) {
    // Through mode has begun since the call looked, and what is dirty may not be stored yet.
    const bool is_kernels = access.object().through.load(std::memory_order_seq_cst) != 0;
    const int error = is_kernels ? finish_entering(access, part.offset(), part.length()) : 0;
    return error < 0 ? error : read_through(access, part);
  }
  const std::uint16_t needed = pages_touched(part.begin, part.end);
  const std::uint16_t valid = block.descriptor().valid_pages();
  const bool resident = (valid & needed) == needed;
  if (!actor.memory->in_memory(block.bucket())) {
    if (valid == 0) return read_into_file_tier(access, block, part);
    // Some of the pages may be here and newer than the store's: each comes from where it is.
    if (!resident) return (valid & needed) == 0 ? read_through(access, part) : -EAGAIN;
    const ssize_t got = read_in_place(access, block, part);
    if (is_failure_of_tier(got)) return read_despite_tier(access, block, part);
    if (got > 0) note_access(*actor.memory, block.bucket());
    return got;
  }
  const std::size_t room = block.descriptor().bucket_bytes();
  if (part.end > room) {
    // It could not grow: what lies past its bucket is in the store, what lies in it must be stored
    // first to be seen.
    return -EAGAIN;
  }
  if (!resident) {
    const int error = fill_and_seal(access, block, part.number, pages_to_fill(access, block, part));
    if (error < 0) {
      if (block.descriptor().valid_pages() == 0) discard_unfilled(actor, block);
      return error;
    }
    actor.note_met(AccessKind::kMiss);
    actor.count(Counter::kMissBytes, part.length());
  } else {
    if (source != TierId::kMemory) actor.note_met(AccessKind::kBelow);
    actor.count(hit_bytes_counter(source), part.length());
  }
  note_access(*actor.memory, block.bucket());
  return copied_of(
      part.length(),
      copy_from_shared(part.out, actor.memory->bytes(block.bucket()) + part.begin, part.length()));
}

// A page of a block from wherever it is. One that its tier does not give, and that is newer than
// the store's, is lost for this read.
ssize_t read_page(const ObjectAccess& access, const ReadPart& page) {
  LockedBlock block = lock_resident(access.actor, access.index, page.number);
  const std::uint16_t needed = pages_touched(page.begin, page.end);
  if (!block || (block.descriptor().valid_pages() & needed) == 0) return read_through(access, page);
  const ssize_t got = read_in_place(access, block, page);
  if (!is_failure_of_tier(got)) return got;
  const bool is_lost = (block.descriptor().dirty_pages() & needed) != 0;
  return is_lost ? -EIO : read_through(access, page);
}

// A small bucket that could not grow, or a tier that does not give all of the block: page by page,
// from the bucket or from the store.
[[gnu::noinline]] ssize_t read_by_pages(const ObjectAccess& access, const ReadPart& part) {
  for (std::size_t at = part.begin; at < part.end;) {
    const std::size_t next = std::min(part.end, (at / kPageBytes + 1) * kPageBytes);
    const ReadPart page{part.number, at, next, part.out + (at - part.begin)};
    if (!read_resident(access.actor, access.index, page)) {
      const ssize_t got = read_page(access, page);
      const auto before = static_cast<ssize_t>(at - part.begin);
      if (got < 0) return before > 0 ? before : got;
      if (static_cast<std::size_t>(got) < page.length()) return before + got;
    }
    at = next;
  }
  return static_cast<ssize_t>(part.length());
}

[[gnu::noinline]] ssize_t read_whole_through(const ObjectAccess& access, std::uint64_t offset,
                                             void* buffer, std::size_t length) {
  end_abandoned_through(access);
  if (const int error = finish_entering(access, offset, length); error < 0) return error;
  ssize_t got = access.backing.read(offset, buffer, length);
  // A buffer that is not all there: how much of it was filled, the kernel says.
  if (got == -EFAULT) {
    got = access.backing.read_once(offset, buffer, length);
  }
  if (got > 0) {
    access.actor.count(Counter::kReadBytes, static_cast<std::uint64_t>(got));
    access.actor.count(Counter::kMissBytes, static_cast<std::uint64_t>(got));
  }
  return got;
}

// Reads blocks that lie in a file tier and stay there, as many as the device can read at once.
std::size_t read_below(const ObjectAccess& access, const ReadPart& part, std::size_t length) {
  if (access.actor.memory->tier_count() == 1) return 0;
  const std::size_t run = read_file_tier_run(access, part.offset(), part.out, length);
  return run > 0 ? run : read_file_tier_piece(access, part.offset(), part.out, part.length());
}

// Blocks that a request wants and that are not here are read one by one: the store hears of all of
// them beforehand, as it would by the request itself. Returns up to where that has been looked at.
[[gnu::noinline]] std::uint64_t foretell_missing(const ObjectAccess& access, std::uint64_t begin,
                                                 std::uint64_t end) {
  const BlockDirectory& directory = access.actor.memory->directory();
  // More than this at once the kernel may not take.
  constexpr std::uint32_t kForetoldMax = 32;
  std::uint32_t past = raw(block_of(begin)) + 1;
  const std::uint32_t last = std::min(raw(block_of(end - 1)), past + kForetoldMax - 2);
  while (past <= last &&
         directory.find(access.index, static_cast<BlockNumber>(past)) == BucketIndex::kNone)
    ++past;
  const std::uint64_t start = offset_of(block_of(begin));
  const std::uint64_t run_end = offset_of(static_cast<BlockNumber>(past));
  if (run_end - start > kBlockBytes) access.backing.will_read(start, run_end - start);
  return run_end;
}

// Reads block by block; `*hit_bytes` counts what was resident. Bytes done, or -errno when there are
// none.
ssize_t read_parts(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                   std::size_t length, std::size_t* hit_bytes) {
  // Only a read of one block can have been sampled.
  const bool is_one = block_of(offset) == block_of(offset + length - 1);
  const std::uint32_t weight = is_one && access.actor.is_sampled() ? Actor::kSampleEvery : 1;
  std::size_t done = 0;
  std::uint64_t foretold = 0;
  while (done < length) {
    const std::uint64_t at = offset + done;
    const std::size_t begin = at & (kBlockBytes - 1);
    const std::size_t take = std::min(length - done, kBlockBytes - begin);
    const ReadPart part{block_of(at), begin, begin + take, out + done};
    if (read_resident(access.actor, access.index, part, weight)) {
      *hit_bytes += take;
    } else if (const std::size_t run = read_below(access, part, length - done); run > 0) {
      access.actor.note_met(AccessKind::kBelow);
      done += run;
      continue;
    } else {
      if (!is_one && at >= foretold) foretold = foretell_missing(access, at, offset + length);
      const auto wanted =
          static_cast<unsigned>(std::min<std::size_t>((length - done) / kBlockBytes + 1, 16));
      ssize_t got = read_missing(access, part, wanted);
      if (got == -EAGAIN) got = read_by_pages(access, part);
      if (got < 0) return done > 0 ? static_cast<ssize_t>(done) : got;
      if (static_cast<std::size_t>(got) < take) return static_cast<ssize_t>(done) + got;
    }
    done += take;
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

void tell_wanted_access(const ObjectAccess& access, std::uint64_t offset, std::size_t length,
                        std::uint64_t started) {
  if (access.stream == DescriptionIndex::kNone) return;
  AccessEvent event;
  event.offset = offset;
  event.cycles = started != 0 ? started : cycle_count();
  event.object = access.index;
  event.length = static_cast<std::uint32_t>(std::min<std::size_t>(length, UINT32_MAX));
  event.stream = access.stream;
  event.descriptor = access.backing.descriptor();
  event.kind = access.actor.met;
  event.owner = access.actor.self;
  access.actor.memory->tell(event);
}

void note_wanted_wait(const ObjectAccess& access, std::uint64_t written, std::uint64_t cycles) {
  if (access.stream == DescriptionIndex::kNone) return;
  Actor& actor = access.actor;
  FileWait wait{.object = access.index,
                .stream = access.stream,
                .descriptor = access.backing.descriptor(),
                .written_bytes = written};
  (actor.met == AccessKind::kWrite ? wait.write_cycles : wait.read_cycles) = cycles;
  actor.waits.add(*actor.memory, actor.self, wait);
}

namespace {

ssize_t read_blocks(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                    std::size_t length);

// The bytes behind all block numbers were never buffered.
[[gnu::noinline]] ssize_t read_past_blocks(const ObjectAccess& access, std::uint64_t offset,
                                           std::byte* out, std::size_t length) {
  ssize_t before = 0;
  if (offset < kBlockableBytes) {
    const std::size_t wanted = kBlockableBytes - offset;
    before = read_blocks(access, offset, out, wanted);
    if (before < static_cast<ssize_t>(wanted)) return before;
  }
  const auto done = static_cast<std::size_t>(before);
  access.actor.count(Counter::kReads, 1);
  const ssize_t got = read_whole_through(access, offset + done, out + done, length - done);
  return got < 0 && before > 0 ? before : before + got;
}

// Everything that is not one plain hit: several blocks, misses, through mode, and the hit that is
// sampled. Timed.
[[gnu::noinline]] ssize_t read_blocks(const ObjectAccess& access, std::uint64_t offset,
                                      std::byte* out, std::size_t length) {
  Actor& actor = access.actor;
  const Object& object = access.object();
  const std::uint64_t started = cycle_count();
  if (object.through.load(std::memory_order_acquire) != 0) {
    const ssize_t got = read_whole_through(access, offset, out, length);
    actor.count(Counter::kReads, 1);
    actor.count(Counter::kIoCycles, cycle_count() - started);
    return got;
  }
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (offset >= size || length == 0) {
    actor.count(Counter::kReads, 1);
    return 0;
  }
  length = std::min<std::uint64_t>(length, size - offset);
  if (__builtin_expect(offset + length > kBlockableBytes, 0))
    return read_past_blocks(access, offset, out, length);
  std::size_t hit_bytes = 0;
  actor.met = AccessKind::kHit;
  const ssize_t got = read_parts(access, offset, out, length, &hit_bytes);
  tell_access(access, offset, length, started, EventLevel::kReads);
  std::uint64_t weight = 1;
  if (hit_bytes == length && block_of(offset) == block_of(offset + length - 1)) {
    // A sampled hit stands for those that were not timed.
    if (actor.is_sampled()) weight = Actor::kSampleEvery;
    actor.count(Counter::kReadHits, 1);
    actor.count(Counter::kPlainHitBytes, length);
  } else {
    actor.count(Counter::kReads, 1);
    actor.count(Counter::kReadBytes, got > 0 ? static_cast<std::uint64_t>(got) : 0);
    actor.count(Counter::kHitBytesMemory, hit_bytes);
  }
  const std::uint64_t cycles = cycle_count() - started;
  if (__builtin_expect(actor.met < AccessKind::kFirstUse, 0)) note_wait(access, 0, cycles);
  actor.count(Counter::kIoCycles, weight * cycles);
  return got;
}

}  // namespace

ssize_t read_object(const ObjectAccess& access, std::uint64_t offset, void* buffer,
                    std::size_t length) {
  if (__builtin_expect(
          read_hit(access.actor, access.object(), access.index, nullptr, {offset, buffer, length}),
          1))
    return static_cast<ssize_t>(length);
  return read_blocks(access, offset, static_cast<std::byte*>(buffer), length);
}

}  // namespace cairn
