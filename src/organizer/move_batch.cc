// SPDX-License-Identifier: Apache-2.0
#include "organizer/move_batch.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/futex.h"
#include "base/system_call.h"
#include "flush/dirty_accounting.h"

namespace cairn {
namespace {

// So long after a program's read of a device it counts as being read, and after it began to wait
// for room as waiting.
constexpr std::uint32_t kRecentlyMs = 20;

// Not for long, whatever the device did.
void rest(std::int64_t nanos) {
  constexpr std::int64_t kRestNanosMax = 20'000'000;
  const timespec time{0, std::min(nanos, kRestNanosMax)};
  ::nanosleep(&time, nullptr);
}

void unpin(BlockDescriptor& block) { block.flusher.store(0, std::memory_order_release); }

}  // namespace

bool has_bytes(const BlockDescriptor& block) {
  const BlockState state = block.state.load(std::memory_order_relaxed);
  return state == BlockState::kClean || state == BlockState::kDirty ||
         state == BlockState::kFlushing;
}

std::uint32_t bucket_bytes(const NodeMemory& memory, BucketIndex bucket) {
  if (!memory.in_memory(bucket)) return kBlockBytes;
  return static_cast<std::uint32_t>(
      bytes_in(static_cast<SizeClass>(memory.block(bucket).size_class)));
}

MoveBatch::MoveBatch(const NodeMemory& memory, BatchWriter& writer)
    : memory_(memory), writer_(writer) {
  moves_.reserve(kBlocksMax);
}

MoveBatch::~MoveBatch() {
  if (staging_ != nullptr) sys::munmap(staging_, kBlocksMax * kBlockBytes);
}

std::size_t MoveBatch::blocks_at_once(TierId tier) const {
  if (tier == TierId::kMemory) return kBlocksMax;
  const ControlHeader& header = memory_.header();
  const std::uint32_t now = monotonic_coarse_ms();
  const bool is_read = now - header.device_read_ms[raw(tier)].load() < kRecentlyMs;
  // Who waits for room waits longer than any reader.
  const bool is_wanted = now - header.room_wanted_ms.load() < kRecentlyMs;
  return is_read && !is_wanted ? kBlocksBesideReads : kBlocksMax;
}

// Step 1. False when the block cannot move now.
bool MoveBatch::add(Actor& actor, BucketIndex from, TierId target, PlacementReason reason) {
  BlockDescriptor& block = memory_.block(from);
  if (!block.try_lock(actor.self)) return false;
  const bool movable = block.object_index() != ObjectIndex::kNone && has_bytes(block) &&
                       !block.is_flushing(actor.owners()) &&
                       actor.object(block.object_index()).through.load() == 0 &&
                       memory_.directory().find(block.object_index(), block.block_number()) == from;
  if (!movable) {
    actor.unlock(block, false);
    return false;
  }
  Lease::Fresh fresh;
  // It stays on the account where it is.
  const AccountId account = memory_.pool(memory_.tier_of(from)).account_of(from);
  const BucketIndex to =
      actor.leases[raw(target)].take(memory_.pool(target), SizeClass::k64KiB, actor.self,
                                     actor.owners(), kBlocksMax, &fresh, account);
  if (to == BucketIndex::kNone) {
    actor.unlock(block, false);
    return false;
  }
  Move move;
  move.from = from;
  move.to = to;
  move.sequence = BlockDescriptor::sequence_in(block.word.load(std::memory_order_relaxed));
  move.length = bucket_bytes(memory_, from);
  move.reason = reason;
  block.flusher.store(actor.self.bits(), std::memory_order_release);
  actor.unlock(block, false);
  if (moves_.empty()) limit_ = kBlocksMax;
  limit_ = std::min({limit_, blocks_at_once(memory_.tier_of(from)), blocks_at_once(target)});
  moves_.push_back(move);
  return true;
}

std::uint64_t MoveBatch::offset_of(BucketIndex bucket) const {
  return memory_.pool(memory_.tier_of(bucket)).offset_of_bucket(bucket);
}

// Where the bytes of the move in `slot` are read to on the way between two file tiers.
std::byte* MoveBatch::staged(std::size_t slot) {
  if (staging_ == nullptr) {
    void* mapped = sys::mmap(nullptr, kBlocksMax * kBlockBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys::is_error(mapped)) return nullptr;
    staging_ = static_cast<std::byte*>(mapped);
  }
  return staging_ + slot * kBlockBytes;
}

// The moves [begin, past) lie side by side on their device: one read fetches all of them.
void MoveBatch::read_run(std::size_t begin, std::size_t past) {
  std::array<iovec, kBlocksMax> parts;
  for (std::size_t at = begin; at < past; ++at)
    parts[at - begin] = {moves_[at].bytes, moves_[at].length};
  const FileTier& tier = memory_.file_tier(memory_.tier_of(moves_[begin].from));
  const int error =
      tier.read_parts(offset_of(moves_[begin].from), std::span(parts.data(), past - begin));
  for (std::size_t at = begin; at < past && error < 0; ++at) moves_[at].bytes = nullptr;
}

// Step 2, first half: what lies in file tiers comes into memory, in as few reads as possible. A
// move whose bytes could not be had is left with none.
void MoveBatch::fetch() {
  std::sort(moves_.begin(), moves_.end(),
            [](const Move& left, const Move& right) { return raw(left.from) < raw(right.from); });
  for (std::size_t at = 0; at < moves_.size(); ++at) {
    Move& move = moves_[at];
    if (memory_.in_memory(move.from)) {
      move.bytes = memory_.bytes(move.from);
    } else {
      move.bytes = memory_.in_memory(move.to) ? memory_.bytes(move.to) : staged(at);
    }
  }
  std::size_t begin = 0;
  while (begin < moves_.size()) {
    std::size_t past = begin + 1;
    const Move& first = moves_[begin];
    if (!memory_.in_memory(first.from) && first.bytes != nullptr) {
      const TierId tier = memory_.tier_of(first.from);
      while (past < moves_.size() && raw(moves_[past].from) == raw(moves_[past - 1].from) + 1 &&
             memory_.tier_of(moves_[past].from) == tier) {
        ++past;
      }
      read_run(begin, past);
    }
    begin = past;
  }
}

// Step 2, second half: to the buckets in file tiers, again side by side where they lie so. Returns
// with a move's bytes gone when they did not arrive.
void MoveBatch::put() {
  std::sort(moves_.begin(), moves_.end(),
            [](const Move& left, const Move& right) { return raw(left.to) < raw(right.to); });
  std::array<iovec, kBlocksMax> parts;
  std::array<std::size_t, kBlocksMax + 1> begins;
  std::vector<BatchWrite> writes;
  for (std::size_t at = 0; at < moves_.size(); ++at) {
    const Move& move = moves_[at];
    if (move.bytes == nullptr || memory_.in_memory(move.to)) continue;
    parts[at] = {move.bytes, move.length};
    const TierId tier = memory_.tier_of(move.to);
    const std::uint64_t offset = offset_of(move.to);
    const bool continues = !writes.empty() &&
                           begins[writes.size() - 1] + writes.back().parts.size() == at &&
                           writes.back().tier == &memory_.file_tier(tier) &&
                           writes.back().offset + writes.back().length == offset;
    if (continues) {
      BatchWrite& write = writes.back();
      write.parts = std::span<const iovec>(write.parts.data(), write.parts.size() + 1);
      write.length += move.length;
      continue;
    }
    begins[writes.size()] = at;
    writes.push_back(BatchWrite{&memory_.file_tier(tier), offset,
                                std::span<const iovec>(&parts[at], 1), move.length, 0});
  }
  if (!writes.empty()) writer_.write_all(writes);
  for (std::size_t index = 0; index < writes.size(); ++index) {
    if (writes[index].result == 0) continue;
    for (std::size_t at = 0; at < writes[index].parts.size(); ++at)
      moves_[begins[index] + at].bytes = nullptr;
  }
}

std::uint32_t MoveBatch::finish(Actor& actor) {
  if (moves_.empty()) return 0;
  const std::int64_t began = monotonic_ns();
  fetch();
  put();
  const std::int64_t took = monotonic_ns() - began;
  std::uint32_t moved = 0;
  for (const Move& move : moves_) {
    if (move.bytes != nullptr && commit(actor, move)) {
      ++moved;
    } else {
      give_up(actor, move);
    }
  }
  moves_.clear();
  if (limit_ == kBlocksBesideReads) rest(kRestsBesideReads * took);
  return moved;
}

// Step 3. False when the block changed meanwhile: it is then still pinned and unlocked.
bool MoveBatch::commit(Actor& actor, const Move& move) {
  BlockDescriptor& old = memory_.block(move.from);
  BlockDescriptor& fresh = memory_.block(move.to);
  actor.lock(old);
  if (BlockDescriptor::sequence_in(old.word.load(std::memory_order_relaxed)) != move.sequence) {
    actor.unlock(old, false);
    return false;
  }
  const ObjectIndex object = old.object_index();
  const std::uint16_t dirty = old.dirty_pages.load();
  fresh.set_identity(object, old.block_number());
  fresh.flusher.store(0, std::memory_order_relaxed);
  fresh.recency_ms.store(old.recency_ms.load(), std::memory_order_relaxed);
  fresh.frequency.store(old.frequency.load(), std::memory_order_relaxed);
  fresh.placed_ms.store(monotonic_coarse_ms(), std::memory_order_relaxed);
  fresh.predecessor.store(0, std::memory_order_relaxed);
  fresh.reason.store(static_cast<std::uint8_t>(move.reason), std::memory_order_relaxed);
  fresh.dirty_since_ms.store(old.dirty_since_ms.load(), std::memory_order_relaxed);
  fresh.enter(BlockState::kFilling);
  fresh.valid_pages.store(old.valid_pages.load(), std::memory_order_relaxed);
  fresh.dirty_pages.store(dirty, std::memory_order_relaxed);
  fresh.enter(dirty != 0 ? BlockState::kDirty : BlockState::kClean);
  if (dirty != 0) note_dirty_block_moved(actor, move.from, move.to);
  memory_.directory().move(move.from, move.to, actor.self, actor.owners());
  actor.unlock(fresh, true);
  unpin(old);
  const TierId from = memory_.tier_of(move.from);
  memory_.pool(from).release(move.from, actor.self);
  futex_wake(old.flusher);
  const TierId to = memory_.tier_of(move.to);
  memory_.journal().note(raw(from), raw(to), move.reason, move.length);
  const bool is_up = to < from;
  actor.count(is_up ? Counter::kPromotedBlocks : Counter::kDemotedBlocks, 1);
  return true;
}

void MoveBatch::give_up(Actor& actor, const Move& move) {
  BlockDescriptor& old = memory_.block(move.from);
  actor.lock(old);
  unpin(old);
  actor.unlock(old, false);
  futex_wake(old.flusher);
  memory_.pool(memory_.tier_of(move.to)).release(move.to, actor.self);
}

}  // namespace cairn
