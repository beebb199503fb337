// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/move_batch.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "memory/tiers/page_seals.h"

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

}  // namespace

MoveBatch::MoveBatch(const NodeMemory& memory, BatchWriter& writer)
    : memory_(memory), writer_(writer) {
  for (Flight& flight : flights_) {
    flight.moves.reserve(kBlocksMax);
    flight.parts.resize(kBlocksMax);
    flight.checked.reserve(kBlocksMax);
    flight.checks.reserve(kBlocksMax / kBlocksCheckedApart);
  }
}

MoveBatch::~MoveBatch() {
  for (Flight& flight : flights_) {
    CAIRN_DCHECK(flight.moves.empty());
    if (flight.staging != nullptr) sys::munmap(flight.staging, kBlocksMax * kBlockBytes);
  }
}

std::size_t MoveBatch::blocks_at_once(TierId tier) const {
  if (tier == TierId::kMemory) return kBlocksMax;
  const DeviceBoard& devices = memory_.device_board();
  const std::uint32_t now = monotonic_coarse_ms();
  const bool is_read = elapsed_ms(now, devices.read_ms[raw(tier)].load()) < kRecentlyMs;
  // A program that waits for room waits longer than any reader.
  const bool is_wanted =
      elapsed_ms(now, memory_.organizer_board().room_wanted_ms.load()) < kRecentlyMs;
  if (is_read && !is_wanted) return kBlocksBesideReads;
  const double bandwidth = devices.bandwidth[raw(tier)].load(std::memory_order_relaxed);
  const auto blocks = static_cast<std::size_t>(bandwidth * kSecondsInFlight / kBlockBytes);
  return std::clamp(blocks, kBlocksInFlightMin, kBlocksMax);
}

// Step 1. False when the block cannot move now.
bool MoveBatch::add(Actor& actor, BucketIndex from, TierId target, PlacementReason reason) {
  LockedBlock block = LockedBlock::try_lock(actor.worker(), from);
  if (!block) return false;
  const BlockDescriptor& descriptor = block.descriptor();
  const ObjectIndex object = descriptor.object_index();
  const bool movable = object != ObjectIndex::kNone && descriptor.has_bytes() && !block.is_held() &&
                       actor.object(object).through.load() == 0 &&
                       memory_.directory().find(object, descriptor.block_number()) == from;
  if (!movable) return false;
  CAIRN_CHECK(raw(target) < memory_.tier_count());
  if (!memory_.takes_blocks(target)) return false;
  Lease::Fresh fresh;
  // It stays on the account where it is.
  const AccountId account = memory_.pool(memory_.tier_of(from)).account_of(from);
  Move move;
  move.fresh = actor.leases[raw(target)].take(
      memory_.pool(target), {SizeClass::k64KiB, kBlocksMax, account}, actor.worker(), &fresh);
  if (!move.fresh) return false;
  move.length = memory_.bucket_bytes(from);
  move.reason = reason;
  move.claim = static_cast<LockedBlock&&>(block).begin_move();
  std::vector<Move>& moves = flights_[filling_].moves;
  moves.push_back(static_cast<Move&&>(move));
  const std::size_t from_limit = blocks_at_once(memory_.tier_of(from));
  const std::size_t to_limit = blocks_at_once(target);
  is_beside_reads_ = is_beside_reads_ || std::min(from_limit, to_limit) == kBlocksBesideReads;
  const std::size_t to_count = ++blocks_to_[raw(target)];
  is_full_ = is_full_ || moves.size() >= from_limit || to_count >= to_limit;
  return true;
}

// Where the bytes of the move in `slot` are read to on the way between two file tiers.
std::byte* MoveBatch::staged(Flight& flight, std::size_t slot) const {
  if (flight.staging == nullptr) {
    void* mapped = sys::mmap(nullptr, kBlocksMax * kBlockBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys::is_error(mapped)) return nullptr;
    flight.staging = static_cast<std::byte*>(mapped);
  }
  CAIRN_CHECK(slot < kBlocksMax);
  return flight.staging + slot * kBlockBytes;
}

// The moves lie side by side on their device: one read fetches all of them.
void MoveBatch::read_run(std::span<Move> run) const {
  CAIRN_CHECK(!run.empty() && run.size() <= kBlocksMax);
  std::array<iovec, kBlocksMax> parts;
  for (std::size_t at = 0; at < run.size(); ++at) parts[at] = {run[at].bytes, run[at].length};
  const TierPlace place = memory_.place_of(run[0].from(), 0, run.size() * kBlockBytes);
  const int error = place.tier->read_parts(place.extent, std::span(parts.data(), run.size()));
  if (error == 0) return;
  if (run.size() == 1) {
    run[0].bytes = nullptr;
    return;
  }
  // What can be had of it.
  for (std::size_t at = 0; at < run.size(); ++at) read_run(run.subspan(at, 1));
}

// The same for many that go into memory; their checksums are looked at meanwhile. False when it is
// to be read otherwise.
bool MoveBatch::fetch_run(Flight& flight, std::span<Move> run) {
  const bool is_up =
      std::ranges::all_of(run, [this](const Move& move) { return memory_.in_memory(move.to()); });
  const TierPlace place = memory_.place_of(run[0].from(), 0, run.size() * kBlockBytes);
  if (!is_up || run.size() < kBlocksCheckedApart || !place.tier->keeps_sums()) return false;
  CAIRN_CHECK(flight.checked.size() + run.size() <= kBlocksMax);
  CAIRN_CHECK(flight.checks.size() < flight.checks.capacity());
  iovec* const parts = flight.checked.data() + flight.checked.size();
  for (const Move& move : run) flight.checked.push_back({move.bytes, move.length});
  const std::span<const iovec> fetched(parts, run.size());
  if (place.tier->fetch_parts(place.extent, fetched) != 0) return false;
  flight.checks.push_back({place, fetched});
  checker_.add(flight.checks.back());
  return true;
}

// Where bytes are other ones than were written, the blocks are read one by one.
void MoveBatch::read_again(Flight& flight) const {
  for (const SumCheck& check : flight.checks) {
    if (check.result == 0) continue;
    for (Move& move : flight.moves) {
      const TierPlace place = memory_.place_of(move.from(), 0, move.length);
      const bool is_of_it = place.tier == check.place.tier &&
                            place.extent.offset >= check.place.extent.offset &&
                            place.extent.end() <= check.place.extent.end();
      if (is_of_it) read_run(std::span(&move, 1));
    }
  }
}

// Step 2, first half: what lies in file tiers comes into memory, in as few reads as possible. A
// move whose bytes could not be had is left with none.
void MoveBatch::fetch(Flight& flight) {
  std::vector<Move>& moves = flight.moves;
  std::sort(moves.begin(), moves.end(), [](const Move& left, const Move& right) {
    return raw(left.from()) < raw(right.from());
  });
  for (std::size_t at = 0; at < moves.size(); ++at) {
    Move& move = moves[at];
    move.bytes = memory_.place_of(move.from(), 0, move.length).address();
    if (move.bytes != nullptr) {
      move.broken = broken_pages(memory_, move.from(), move.claim.sequence());
      if (move.broken != 0) move.bytes = nullptr;
      continue;
    }
    move.bytes = memory_.place_of(move.to(), 0, move.length).address();
    if (move.bytes == nullptr) move.bytes = staged(flight, at);
  }
  std::size_t begin = 0;
  while (begin < moves.size()) {
    std::size_t past = begin + 1;
    const Move& first = moves[begin];
    if (!memory_.in_memory(first.from()) && first.bytes != nullptr) {
      const TierId tier = memory_.tier_of(first.from());
      while (past < moves.size() && past - begin < kBlocksCheckedAtOnce &&
             raw(moves[past].from()) == raw(moves[past - 1].from()) + 1 &&
             memory_.tier_of(moves[past].from()) == tier) {
        ++past;
      }
      const std::span<Move> run = std::span(moves).subspan(begin, past - begin);
      if (!fetch_run(flight, run)) read_run(run);
    }
    begin = past;
  }
}

// Step 2, second half: to the buckets in file tiers, again side by side where they lie so.
void MoveBatch::put(Flight& flight) {
  std::vector<Move>& moves = flight.moves;
  std::vector<BatchWrite>& writes = flight.writes;
  std::sort(moves.begin(), moves.end(),
            [](const Move& left, const Move& right) { return raw(left.to()) < raw(right.to()); });
  for (std::size_t at = 0; at < moves.size(); ++at) {
    const Move& move = moves[at];
    if (move.bytes == nullptr || memory_.in_memory(move.to())) continue;
    flight.parts[at] = {move.bytes, move.length};
    const TierPlace place = memory_.place_of(move.to(), 0, move.length);
    const bool continues = !writes.empty() &&
                           flight.begins.back() + writes.back().parts.size() == at &&
                           writes.back().place.tier == place.tier &&
                           writes.back().place.extent.end() == place.extent.offset;
    if (continues) {
      BatchWrite& write = writes.back();
      write.parts = std::span<const iovec>(write.parts.data(), write.parts.size() + 1);
      write.place.extent.length += move.length;
      continue;
    }
    flight.begins.push_back(at);
    writes.push_back(BatchWrite{place, std::span<const iovec>(&flight.parts[at], 1), 0});
  }
  if (!writes.empty()) writer_.start(writes);
}

// The end of step 2, and step 3. A move whose bytes did not arrive is given up.
std::uint32_t MoveBatch::land(Actor& actor, Flight& flight) {
  CAIRN_CHECK(flight.begins.size() == flight.writes.size());
  if (!flight.writes.empty()) writer_.wait(flight.writes);
  for (std::size_t index = 0; index < flight.writes.size(); ++index) {
    const BatchWrite& write = flight.writes[index];
    if (write.result == 0) continue;
    for (std::size_t at = 0; at < write.parts.size(); ++at)
      flight.moves[flight.begins[index] + at].bytes = nullptr;
  }
  checker_.wait(flight.checks);
  read_again(flight);
  std::uint32_t moved = 0;
  for (Move& move : flight.moves) {
    if (commit(actor, move)) ++moved;
  }
  flight.moves.clear();
  flight.writes.clear();
  flight.begins.clear();
  flight.checks.clear();
  flight.checked.clear();
  return moved;
}

std::uint32_t MoveBatch::advance(Actor& actor) {
  return is_beside_reads_ ? finish(actor) : send(actor);
}

std::uint32_t MoveBatch::send(Actor& actor) {
  Flight& added = flights_[filling_];
  fetch(added);
  put(added);
  blocks_to_.fill(0);
  is_full_ = false;
  filling_ = 1 - filling_;
  return land(actor, flights_[filling_]);
}

std::uint32_t MoveBatch::finish(Actor& actor) {
  if (size() == 0) return 0;
  const bool is_to_rest = is_beside_reads_;
  is_beside_reads_ = false;
  const std::int64_t began = monotonic_ns();
  // Those on their way land; then those that were added do.
  std::uint32_t moved = send(actor);
  moved += land(actor, flights_[1 - filling_]);
  if (is_to_rest) rest(kRestsBesideReads * (monotonic_ns() - began));
  return moved;
}

// Step 3. False when the bytes were not carried, or the block changed meanwhile: it stays where it
// is.
bool MoveBatch::commit(Actor& actor, Move& move) {
  const BucketIndex from_bucket = move.from();
  const TierId from = memory_.tier_of(from_bucket);
  const TierId to = memory_.tier_of(move.to());
  UnclaimedBlock old = static_cast<ClaimedBlock&&>(move.claim).end_move();
  if (move.bytes == nullptr || !old) {
    if (old && move.broken != 0) forget_broken(memory_, old, move.broken);
    old.unlock();
    // The device may have other bytes than the checksums say: those that a program has written
    // meanwhile, or none.
    const TierPlace place = memory_.place_of(move.to(), 0, kBlockBytes);
    if (to != TierId::kMemory) place.tier->forget_sums(place.extent);
    memory_.pool(to).release(static_cast<FreshBlock&&>(move.fresh));
    return false;
  }
  Relocated moved = static_cast<UnclaimedBlock&&>(old).relocate(
      static_cast<FreshBlock&&>(move.fresh), move.reason);
  carry_mark(move, from_bucket, moved.block);
  seal_carried(memory_, moved.block, from_bucket);
  moved.block.unlock();
  memory_.pool(from).release(static_cast<FreshBlock&&>(moved.emptied));
  if (from == TierId::kMemory)
    memory_.organizer_board().room_made.fetch_add(1, std::memory_order_relaxed);
  memory_.journal().note(raw(from), raw(to), move.reason, move.length);
  const bool is_up = to < from;
  actor.count(is_up ? Counter::kPromotedBlocks : Counter::kDemotedBlocks, 1);
  return true;
}

// A block that was fetched ahead and goes where it is wanted waits there for its use. If it goes
// for any other reason, the fetch was in vain. `block` is its new place, `from` the bucket that it
// has left.
void MoveBatch::carry_mark(const Move& move, BucketIndex from, LockedBlock& block) const {
  BlockDescriptor& old = memory_.block(from);
  const FetchJournal& fetches = memory_.fetches();
  const std::uint8_t waits_for = old.fetched_by();
  const bool is_up = memory_.in_memory(block.bucket());
  if (move.reason != PlacementReason::kFetched || move.length != kBlockBytes) {
    memory_.note_unused(from);
  } else if (old.take_unread()) {
    block.set_unread(waits_for);
    if (is_up) {
      fetches.note_left_below(waits_for, kBlockBytes);
    } else if (memory_.in_memory(from)) {
      fetches.note_sent_below(waits_for, kBlockBytes);
    }
  } else if (is_up) {
    block.set_unread(fetched_by_);
    fetches.note_fetched(fetched_by_, kBlockBytes);
  }
  if (is_up && block.descriptor().is_unread())
    memory_.block(block.bucket()).note_use(monotonic_coarse_ms(), 0);
}

}  // namespace cairn
