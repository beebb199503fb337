// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/organizer_thread.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "service/organizer/organizer.h"
#include "service/organizer/uring_writer.h"

namespace cairn::node {
namespace {

constexpr int kIdleMs = 3'600'000;
// While a tier stays short because dirty data is in the way: look again as the flusher goes on,
// less often when it does not (a failing backing store), and not at all before somebody asks once
// nothing can change.
constexpr int kAgainMsMin = 2;
constexpr int kAgainMsMax = 200;
// While files are read whose place depends on their hotness: how often it is looked at, and the
// part of a processor that looking may cost where there are many blocks.
constexpr int kRankMs = 100;
constexpr int kRankPartOfTime = 20;
constexpr std::uint64_t kRiseBlocks = 128;

std::array<TierLimits, kTiersMax> watermarks_of(const NodeMemory& memory,
                                                const NodeConfig& config) {
  std::array<TierLimits, kTiersMax> limits{};
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    limits[tier] = limits_for(memory.pool(static_cast<TierId>(tier)).slab_count(),
                              config.evict_low_percent, config.evict_high_percent);
  }
  return limits;
}

}  // namespace

OrganizerThread::OrganizerThread(const NodeMemory& memory, Owner self, const NodeConfig& config,
                                 Flusher& flusher, const Deciders& deciders)
    : memory_(memory),
      self_(self),
      config_(config),
      flusher_(flusher),
      placement_(deciders.placement),
      replacement_(deciders.replacement),
      headroom_(memory.pool(TierId::kMemory).slab_count()),
      free_slabs_before_(memory.pool(TierId::kMemory).free_slabs()) {
  const auto limits = watermarks_of(memory, config);
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    const bool is_used = memory.takes_blocks(static_cast<TierId>(tier));
    memory.organizer_board().low_slabs[tier].store(is_used ? limits[tier].low_slabs : 0,
                                                   std::memory_order_relaxed);
  }
  memory.organizer_board().roomy_slabs.store(limits[0].high_slabs, std::memory_order_relaxed);
}

OrganizerThread::~OrganizerThread() { stop(); }

void OrganizerThread::start() {
  CAIRN_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void OrganizerThread::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  memory_.organizer_board().bell.ring_anyway();
  thread_.join();
}

void OrganizerThread::sleep(std::uint32_t heard, int timeout_ms) {
  OrganizerBoard& board = memory_.organizer_board();
  board.bell.sleep(heard, timeout_ms, [&] {
    if (stopping_.load()) return true;
    if (gave_up_ || timeout_ms != kIdleMs) return false;
    for (unsigned tier = 0; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
      const auto id = static_cast<TierId>(tier);
      if (board.is_short(id, memory_.pool(id).common_slabs())) return true;
    }
    return false;
  });
}

void OrganizerThread::run() {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[0];
  UringWriter writer;
  Organizer organizer(memory_, placement_.default_policy(), replacement_, writer,
                      watermarks_of(memory_, config_));
  TierMovers movers(memory_, self_, placement_.default_policy(), replacement_,
                    watermarks_of(memory_, config_));
  int again_ms = 0;
  while (!stopping_.load()) {
    const std::uint32_t heard = memory_.organizer_board().bell.listen();
    const Room room = make_room(movers);
    const int bursts_again_ms = follow_bursts(organizer, actor);
    placement_.refresh();
    const int rank_again_ms = follow_hotness(organizer, actor);
    reclaim_objects(actor);
    actor.drop_leases();
    gave_up_ = room == Room::kStuck || room == Room::kGoingOn;
    is_at_rest_.store(room != Room::kGoingOn);
    if (room == Room::kEnough || room == Room::kGoingOn) {
      again_ms = 0;
      sleep(heard, std::min(rank_again_ms, bursts_again_ms));
    } else if (room == Room::kProgress) {
      again_ms = kAgainMsMin;
      sleep(heard, again_ms);
    } else {
      again_ms = std::min(std::max(again_ms * 2, kAgainMsMin), kAgainMsMax);
      // With nothing dirty in the way only a client can change anything, and it wakes us.
      sleep(heard, memory_.flusher_board().dirty_bytes.load() != 0 ? again_ms : kIdleMs);
    }
    is_at_rest_.store(false);
  }
  is_at_rest_.store(true);  // for good
  actor.drop_leases();
}

std::uint64_t OrganizerThread::reads_so_far() const {
  std::uint64_t reads = 0;
  for (std::uint32_t slot = 0; slot < memory_.slot_count(); ++slot) {
    for (const CounterShard& shard : memory_.slot(static_cast<std::uint16_t>(slot)).shards)
      reads += shard.get(Counter::kReadHits) + shard.get(Counter::kReads);
  }
  return reads;
}

std::uint64_t OrganizerThread::written_so_far() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t slot = 0; slot < memory_.slot_count(); ++slot) {
    for (const CounterShard& shard : memory_.slot(static_cast<std::uint16_t>(slot)).shards)
      bytes += shard.get(Counter::kWriteBytes);
  }
  return bytes;
}

int OrganizerThread::follow_bursts(Organizer& organizer, Actor& actor) {
  if (memory_.tiers_for(BufferingMode::kAsync) < 2) return kIdleMs;  // nowhere to move blocks
  const BucketPool& pool = memory_.pool(TierId::kMemory);
  const std::uint32_t before = free_slabs_before_ + slabs_made_free_;
  const std::uint32_t now_free = pool.free_slabs();
  if (before > now_free) consumed_slabs_ += before - now_free;
  headroom_.observe(monotonic_coarse_ms(), consumed_slabs_, written_so_far() / kBlockBytes);
  slabs_made_free_ = 0;
  if (const std::uint32_t wanted = headroom_.take_wanted(); now_free < wanted)
    organizer.make_headroom(actor, TierId::kMemory, wanted);
  free_slabs_before_ = pool.free_slabs();
  return headroom_.is_in_burst() ? static_cast<int>(Headroom::kPauseMs) : kIdleMs;
}

// A slice of the files that are to rise: in between, room is made where it is short.
int OrganizerThread::raise_some(Organizer& organizer, Actor& actor) {
  std::size_t files = 0;
  for (std::uint64_t blocks = 0; files < rising_.size() && blocks < kRiseBlocks; ++files)
    blocks += memory_.objects().at(rising_[files].object).blocks.load(std::memory_order_relaxed);
  const auto end = rising_.begin() + static_cast<std::ptrdiff_t>(files);
  const bool has_moved = organizer.raise(actor, std::span(rising_.data(), files)) != 0;
  rising_.erase(rising_.begin(), has_moved ? end : rising_.end());
  return rising_.empty() ? kIdleMs : 1;
}

int OrganizerThread::follow_hotness(Organizer& organizer, Actor& actor) {
  if (!placement_.ranks()) return kIdleMs;
  const int more_ms = raise_some(organizer, actor);
  const std::int64_t now = monotonic_ns();
  const std::int64_t rest_ms = rank_every_ms_ - (now - ranked_ns_) / 1'000'000;
  if (rest_ms > 0) return std::min(more_ms, static_cast<int>(rest_ms));
  ranked_ns_ = now;
  rising_ = placement_.rank();
  const std::int64_t took_ms = (monotonic_ns() - now) / 1'000'000;
  rank_every_ms_ = std::max<std::int64_t>(kRankMs, kRankPartOfTime * took_ms);
  const std::uint64_t reads = reads_so_far();
  const bool is_quiet = reads == reads_seen_;
  reads_seen_ = reads;
  if (!rising_.empty()) return 1;
  if (!is_quiet) return static_cast<int>(rank_every_ms_);
  // The next reader wakes this thread.
  memory_.organizer_board().rank_wanted.store(1, std::memory_order_seq_cst);
  return kIdleMs;
}

OrganizerThread::Room OrganizerThread::make_room(TierMovers& movers) {
  const RoomMade made = movers.make_room(placement_.rooms_wanted());
  slabs_made_free_ += made.left_memory;
  if (made.dirty_in_the_way != 0) flusher_.kick(true);
  if (made.is_going_on) return Room::kGoingOn;
  if (!made.is_short) return Room::kEnough;
  return made.dropped + made.demoted != 0 ? Room::kProgress : Room::kStuck;
}

void OrganizerThread::reclaim_objects(Actor& actor) const {
  ObjectTable& objects = memory_.objects();
  if (std::uint64_t{objects.live_count()} * 10 < std::uint64_t{objects.capacity()} * 9) return;
  objects.reclaim_idle(objects.capacity() / 10, actor.self, actor.owners());
}

}  // namespace cairn::node
