// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/file_tier_io.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/signal_gate.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// As many blocks as the bounce memory holds: 1 MiB is what disks stream with.
constexpr std::size_t kBlocksMax = Actor::kBounceBlocks;
static_assert(kBlocksMax * kBlockBytes == 1 << 20);
static_assert(kBlocksMax == BounceCopy::kBlocksMax, "a word is kept for each of them");

// Less of a block is a piece of it.
constexpr std::size_t kPieceBytes = kBlockBytes / 2;

constexpr bool is_page_aligned(std::uint64_t value) { return value % kPageBytes == 0; }
constexpr std::size_t pages_end(std::size_t end) {
  return (end + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// The part of a block is in a file tier, is used there, and nobody is changing it. `*word` is what
// must not have moved when the bytes have been read.
bool is_readable_below(const ObjectAccess& access, BlockNumber number, BucketIndex bucket,
                       std::uint16_t pages, std::uint64_t* word) {
  const NodeMemory& memory = *access.actor.memory;
  if (bucket == BucketIndex::kNone || memory.in_memory(bucket)) return false;
  const BlockDescriptor& descriptor = memory.block(bucket);
  *word = descriptor.word(std::memory_order_acquire);
  return !BlockDescriptor::is_locked(*word) && descriptor.holds(access.index, number) &&
         (descriptor.valid_pages() & pages) == pages &&
         stays_in_file_tier(access, number, bucket, Promotion::kIfWorthwhile);
}

// Requires: the bytes have been copied.
bool is_unchanged(const BlockDescriptor& descriptor, std::uint64_t word) {
  const std::uint64_t now = descriptor.word();
  return ((word ^ now) & ~(BlockDescriptor::kWaiters | BlockDescriptor::kMarks)) == 0;
}

// It has been read where it is.
void note_use(const NodeMemory& memory, BucketIndex bucket) {
  (void)memory.note_used(bucket, false);
  note_access(memory, bucket);
}

// Blocks that lie side by side in one file tier, as they were before their bytes were read.
class ResidentRun {
 public:
  ResidentRun(const ObjectAccess& access, std::uint64_t offset, std::size_t length)
      : access_(access), memory_(*access.actor.memory), offset_(offset) {
    while (count_ < kBlocksMax && bytes_ < length && add(length - bytes_)) {
    }
  }

  std::size_t bytes() const { return bytes_; }
  TierId tier() const { return tier_; }
  bool begins_at(BucketIndex bucket) const { return count_ != 0 && first_ == bucket; }
  std::uint64_t word(std::size_t at) const { return words_[at]; }
  // The pages that have all of its bytes.
  TierPlace pages() const {
    const std::size_t skipped = offset_ % kPageBytes;
    return memory_.place_of(first_, offset_ % kBlockBytes - skipped, pages_end(skipped + bytes_));
  }
  // Bytes at the front that nobody has touched since; to be called when they have been copied.
  std::size_t unchanged_bytes() const {
    end_shared_copy();
    std::size_t good = 0;
    for (std::size_t at = 0; at < count_; ++at) {
      if (!is_unchanged(block(at), words_[at])) break;
      good += length_in(at);
    }
    return good;
  }
  // The store has the same.
  bool is_clean() const {
    for (std::size_t at = 0; at < count_; ++at) {
      if (block(at).state() != BlockState::kClean) return false;
    }
    return true;
  }
  void note_access() const {
    for (std::size_t at = 0; at < count_; ++at) note_use(memory_, bucket(at));
  }

 private:
  BucketIndex bucket(std::size_t at) const {
    return static_cast<BucketIndex>(raw(first_) + static_cast<std::uint32_t>(at));
  }
  BlockDescriptor& block(std::size_t at) const { return memory_.block(bucket(at)); }
  std::size_t length_in(std::size_t at) const {
    const std::uint64_t begin = at == 0 ? offset_ : (offset_ / kBlockBytes + at) * kBlockBytes;
    const std::uint64_t end = (offset_ / kBlockBytes + at + 1) * kBlockBytes;
    return std::min(end, offset_ + bytes_) - begin;
  }

  bool add(std::size_t wanted) {
    const std::uint64_t at = offset_ + bytes_;
    const std::size_t begin = at % kBlockBytes;
    const std::size_t take = std::min(wanted, kBlockBytes - begin);
    if (take < kPieceBytes) return false;
    const BlockNumber number = block_of(at);
    const BucketIndex found = memory_.directory().find(access_.index, number);
    const bool continues =
        count_ == 0 || (found == bucket(count_) && memory_.pool(tier_).contains(found));
    if (!continues || !is_readable_below(access_, number, found, pages_touched(begin, begin + take),
                                         &words_[count_])) {
      return false;
    }
    if (count_ == 0) {
      first_ = found;
      tier_ = memory_.tier_of(found);
    }
    CAIRN_DCHECK(memory_.tier_of(found) == tier_);
    ++count_;
    bytes_ += take;
    return true;
  }

  const ObjectAccess& access_;
  const NodeMemory& memory_;
  const std::uint64_t offset_;
  BucketIndex first_{};
  TierId tier_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::array<std::uint64_t, kBlocksMax> words_;
};

// Blocks that were placed in file tiers, locked until their bytes are there.
class FreshRun {
 public:
  FreshRun(const ObjectAccess& access, BlockNumber first, const std::byte* in)
      : access_(access), memory_(*access.actor.memory), first_(first), in_(in) {}

  std::size_t size() const { return count_; }
  BlockNumber next() const {
    return static_cast<BlockNumber>(raw(first_) + static_cast<std::uint32_t>(count_));
  }
  void add(LockedBlock block) {
    CAIRN_DCHECK(count_ < kBlocksMax && block.descriptor().valid_pages() == 0);
    CAIRN_DCHECK(block.descriptor().holds(access_.index, next()));
    CAIRN_DCHECK(!memory_.in_memory(block.bucket()));
    blocks_[count_] = static_cast<LockedBlock&&>(block);
    writes_[count_] = WritableBlock(blocks_[count_], kAllPages);
    ++count_;
  }
  // Returns how many have arrived. The others are resident no more.
  std::size_t write() {
    std::size_t done = 0;
    while (done < count_) {
      const std::size_t past = end_of_neighbours(done);
      if (write_neighbours(done, past) < 0) break;
      for (std::size_t at = done; at < past; ++at) publish(at);
      done = past;
    }
    for (std::size_t at = done; at < count_; ++at) give_up(at);
    return done;
  }

 private:
  std::size_t end_of_neighbours(std::size_t begin) const {
    const TierId tier = memory_.tier_of(blocks_[begin].bucket());
    std::size_t past = begin + 1;
    while (past < count_ && raw(blocks_[past].bucket()) == raw(blocks_[past - 1].bucket()) + 1 &&
           memory_.pool(tier).contains(blocks_[past].bucket())) {
      ++past;
    }
    return past;
  }
  // A tier that keeps checksums gets a copy: another thread of the program may change its buffer
  // between the write and the look at the bytes, and bytes that are sound would never be read
  // again; or it may take the buffer away.
  int write_neighbours(std::size_t begin, std::size_t past) const {
    const std::byte* bytes = in_ + begin * kBlockBytes;
    const std::size_t length = (past - begin) * kBlockBytes;
    const TierPlace place = memory_.place_of(blocks_[begin].bucket(), 0, length);
    if (place.tier->keeps_sums() || !is_page_aligned(reinterpret_cast<std::uintptr_t>(bytes))) {
      std::byte* bounce = access_.actor.bounce_blocks();
      if (bounce == nullptr) return -ENOMEM;
      if (user_copy(bounce, bytes, length) > 0) return -EFAULT;
      bytes = bounce;
    }
    return place.write(bytes);
  }
  void publish(std::size_t at) {
    writes_[at].commit();
    access_.object().extend_to(offset_of(first_) + (at + 1) * kBlockBytes);
    blocks_[at].unlock();
  }

  void give_up(std::size_t at) {
    writes_[at] = WritableBlock();
    discard_unfilled(access_.actor, blocks_[at]);
  }

  const ObjectAccess& access_;
  const NodeMemory& memory_;
  const BlockNumber first_;
  const std::byte* in_;
  std::size_t count_ = 0;
  std::array<LockedBlock, kBlocksMax> blocks_;
  std::array<WritableBlock, kBlocksMax> writes_;  // one for each of them
};

bool is_copy_of(const BounceCopy& copy, ObjectIndex object, BlockNumber number, BucketIndex bucket,
                std::uint64_t word) {
  if (!copy.has(object, number)) return false;
  const std::uint32_t at = raw(number) - raw(copy.first);
  const std::uint64_t changes = (copy.words[at] ^ word) & ~BlockDescriptor::kMarks;
  return raw(bucket) == raw(copy.bucket) + at && changes == 0;
}

struct PieceOf {
  BlockNumber number;
  BucketIndex bucket;
  std::uint64_t word;  // of its descriptor
  std::size_t begin;   // in the block
  std::size_t length;
};

// How many blocks are read now for the sake of a piece; 0: no more than the piece. A sequential
// read gets twice as many as the last one.
unsigned blocks_ahead(const BounceCopy& copy, ObjectIndex object, BlockNumber number) {
  const bool in_order =
      copy.object == object && (number == copy.number || raw(number) == raw(copy.number) + 1);
  if (!in_order) return 0;
  const bool has_changed = copy.has(object, number);
  return has_changed ? 1 : std::min(std::max(2 * copy.count, 1U), BounceCopy::kBlocksMax);
}

// Brings the piece, the block or the blocks from it on into the bounce memory. False when somebody
// was changing them, or the device does not give them.
bool copy_pieces(const ObjectAccess& access, const PieceOf& piece) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const unsigned blocks = blocks_ahead(actor.copy, access.index, piece.number);
  std::byte* bounce = actor.bounce_blocks();
  if (bounce == nullptr) return false;
  const std::size_t more = blocks > 1 ? (blocks - 1) * kBlockBytes : 0;
  const ResidentRun rest(access, offset_of(piece.number) + kBlockBytes, more);
  const bool is_alone = !rest.begins_at(static_cast<BucketIndex>(raw(piece.bucket) + 1)) ||
                        rest.tier() != memory.tier_of(piece.bucket);
  const std::size_t first = blocks == 0 ? piece.begin / kPageBytes * kPageBytes : 0;
  const std::size_t past = blocks == 0 ? pages_end(piece.begin + piece.length)
                                       : kBlockBytes + (is_alone ? 0 : rest.bytes());
  memory.device_board().note_read(memory.tier_of(piece.bucket), monotonic_coarse_ms());
  if (memory.place_of(piece.bucket, first, past - first).peek(bounce + first) < 0) return false;
  end_shared_copy();
  if (!is_unchanged(memory.block(piece.bucket), piece.word)) return false;
  BounceCopy& copy = actor.copy;
  copy.object = access.index;
  copy.number = copy.first = piece.number;
  copy.bucket = piece.bucket;
  copy.count = 0;
  if (blocks == 0) return true;
  copy.words[copy.count++] = piece.word;
  const std::size_t good = is_alone ? 0 : rest.unchanged_bytes() / kBlockBytes;
  CAIRN_DCHECK(copy.count + good <= BounceCopy::kBlocksMax);
  for (std::size_t at = 0; at < good; ++at) copy.words[copy.count++] = rest.word(at);
  return true;
}

// Whether this read is one of those that a saturated tier leaves to the store. Evenly spread
// (Knuth, TAOCP 3, 6.4: multiples of the golden ratio).
bool goes_around(Actor& actor, TierId tier) {
  const std::uint32_t share =
      actor.memory->device_board().read_around[raw(tier)].load(std::memory_order_relaxed);
  return __builtin_expect(share != 0, 0) && (++actor.draws * 0x9e3779b9U) >> 24 < share;
}

std::size_t read_around(const ObjectAccess& access, const ResidentRun& run, std::uint64_t offset,
                        std::byte* out) {
  if (!run.is_clean() || offset + run.bytes() > access.object().store_size.load()) return 0;
  const ssize_t got = read_store(access, offset, out, run.bytes());
  if (got != static_cast<ssize_t>(run.bytes())) return 0;
  const std::size_t good = run.unchanged_bytes();
  access.actor.count(Counter::kMissBytes, good);
  access.actor.count(Counter::kAroundBytes, good);
  run.note_access();
  return good;
}

}  // namespace

std::size_t read_file_tier_run(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                               std::size_t length) {
  const ResidentRun run(access, offset, length);
  if (run.bytes() == 0) return 0;
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  if (goes_around(actor, run.tier())) {
    if (const std::size_t done = read_around(access, run, offset, out); done > 0) return done;
  }
  memory.device_board().note_read(run.tier(), monotonic_coarse_ms());
  const TierPlace pages = run.pages();
  // Straight to where it is wanted only when nothing else lies on those pages: fork() beside direct
  // I/O may take a page away that is written meanwhile (open(2), NOTES).
  const bool is_direct =
      pages.extent.length == run.bytes() && is_page_aligned(reinterpret_cast<std::uintptr_t>(out));
  const SignalGateGuard gate;  // a handler that reads would use the same bounce memory
  std::byte* target = is_direct ? out : actor.bounce_blocks();
  if (target == nullptr) return 0;
  if (pages.peek(target) < 0) return 0;
  std::size_t good = run.unchanged_bytes();
  if (!is_direct) good -= user_copy(out, target + offset % kPageBytes, good);
  actor.count(hit_bytes_counter(run.tier()), good);
  run.note_access();
  return good;
}

std::size_t read_file_tier_piece(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                                 std::size_t length) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const BlockNumber number = block_of(offset);
  const std::size_t begin = offset % kBlockBytes;
  const BucketIndex bucket = memory.directory().find(access.index, number);
  std::uint64_t word = 0;
  if (length >= kPieceBytes ||
      !is_readable_below(access, number, bucket, pages_touched(begin, begin + length), &word)) {
    return 0;
  }
  const SignalGateGuard gate;
  BounceCopy& copy = actor.copy;
  // The second piece of a block is part of the same access.
  const bool is_same = copy.object == access.index && copy.number == number;
  if (!is_copy_of(copy, access.index, number, bucket, word)) {
    const PieceOf piece{number, bucket, word, begin, length};
    if (!copy_pieces(access, piece)) return 0;
  }
  if (!is_same) note_use(memory, bucket);
  copy.number = number;
  const std::size_t at = copy.count == 0 ? 0 : raw(number) - raw(copy.first);
  if (user_copy(out, actor.bounce + at * kBlockBytes + begin, length) > 0) return 0;
  actor.count(hit_bytes_counter(memory.tier_of(bucket)), length);
  return length;
}

std::size_t write_file_tier_run(const ObjectAccess& access, LockedBlock first, BlockNumber number,
                                const std::byte* in, std::size_t blocks) {
  FreshRun run(access, number, in);
  run.add(static_cast<LockedBlock&&>(first));
  const std::size_t count = std::min(blocks, kBlocksMax);
  while (run.size() < count) {
    LockedBlock next = place_fresh(access, run.next(), static_cast<unsigned>(count - run.size()));
    if (!next) break;
    if (access.actor.memory->in_memory(next.bucket())) {
      // The plan's next element is memory: that block is the caller's again.
      discard_unfilled(access.actor, next);
      break;
    }
    run.add(static_cast<LockedBlock&&>(next));
  }
  return run.write() * kBlockBytes;
}

}  // namespace cairn
