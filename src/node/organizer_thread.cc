// SPDX-License-Identifier: Apache-2.0
#include "node/organizer_thread.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/futex.h"
#include "organizer/organizer.h"
#include "replacement/policies.h"
#include "tiers_uring/uring_writer.h"

namespace cairn::node {
namespace {

constexpr int kIdleMs = 3'600'000;
// While a tier stays short because dirty data is in the way: look again as the flusher goes on,
// less often when it does not (a failing backing store), and not at all before somebody asks once
// nothing can change.
constexpr int kAgainMsMin = 2;
constexpr int kAgainMsMax = 200;
// While files are read whose place depends on their hotness: how often it is looked at.
constexpr int kRankMs = 500;

std::array<TierLimits, kTiersMax> limits_of(const NodeMemory& memory, const NodeConfig& config) {
  std::array<TierLimits, kTiersMax> limits{};
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    limits[tier] = limits_for(memory.pool(static_cast<TierId>(tier)).slab_count(),
                              config.evict_low_percent, config.evict_high_percent);
  }
  return limits;
}

}  // namespace

OrganizerThread::OrganizerThread(const NodeMemory& memory, Owner self, const NodeConfig& config,
                                 Flusher& flusher, PlacementEngine& placement)
    : memory_(memory), self_(self), config_(config), flusher_(flusher), placement_(placement) {
  const auto limits = limits_of(memory, config);
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    memory.header().low_slabs[tier].store(limits[tier].low_slabs, std::memory_order_relaxed);
  }
}

OrganizerThread::~OrganizerThread() { stop(); }

void OrganizerThread::start() {
  thread_ = std::thread([this] { run(); });
}

void OrganizerThread::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  memory_.header().organizer_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(memory_.header().organizer_wake);
  thread_.join();
}

void OrganizerThread::sleep(std::uint32_t seen, int timeout_ms) {
  ControlHeader& header = memory_.header();
  header.organizer_sleeping.store(1, std::memory_order_seq_cst);
  bool is_short = false;
  const unsigned tiers = memory_.tiers_for(BufferingMode::kAsync);
  for (unsigned tier = 0; tier < tiers && timeout_ms == kIdleMs; ++tier) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(tier));
    is_short = is_short || (!gave_up_ && pool.common_slabs() < header.low_slabs[tier].load());
  }
  if (!stopping_.load() && !is_short) futex_wait(header.organizer_wake, seen, timeout_ms);
  header.organizer_sleeping.store(0, std::memory_order_seq_cst);
}

void OrganizerThread::run() {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[0];
  UringWriter writer;
  Organizer organizer(memory_, placement_.default_policy(), *replacement_policies()[0], writer,
                      limits_of(memory_, config_));
  ControlHeader& header = memory_.header();
  int again_ms = 0;
  while (!stopping_.load()) {
    const std::uint32_t seen = header.organizer_wake.load(std::memory_order_acquire);
    const Room room = make_room(organizer, actor);
    placement_.refresh();
    const int rank_again_ms = follow_hotness(organizer, actor);
    reclaim_objects(actor);
    actor.drop_leases();
    gave_up_ = room == Room::kStuck;
    if (room == Room::kEnough) {
      again_ms = 0;
      sleep(seen, rank_again_ms);
    } else if (room == Room::kProgress) {
      again_ms = kAgainMsMin;
      sleep(seen, again_ms);
    } else {
      again_ms = std::min(std::max(again_ms * 2, kAgainMsMin), kAgainMsMax);
      // With nothing dirty in the way only a client can change anything, and it wakes us.
      sleep(seen, header.dirty_bytes.load() != 0 ? again_ms : kIdleMs);
    }
  }
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

int OrganizerThread::follow_hotness(Organizer& organizer, Actor& actor) {
  if (!placement_.ranks()) return kIdleMs;
  const std::int64_t now = monotonic_ns();
  const std::int64_t rest_ms = kRankMs - (now - ranked_ns_) / 1'000'000;
  if (rest_ms > 0) return static_cast<int>(rest_ms);
  ranked_ns_ = now;
  for (const Raised& file : placement_.rank()) (void)organizer.raise(actor, file.object, file.home);
  const std::uint64_t reads = reads_so_far();
  const bool is_quiet = reads == reads_seen_;
  reads_seen_ = reads;
  if (!is_quiet) return kRankMs;
  // Whoever reads next wakes us.
  memory_.header().rank_wanted.store(1, std::memory_order_seq_cst);
  return kIdleMs;
}

OrganizerThread::Room OrganizerThread::make_room(Organizer& organizer, Actor& actor) {
  bool is_short = false;
  bool progress = false;
  bool dirty = false;
  // The slowest tier first: what has room below can take what leaves above.
  for (unsigned tier = memory_.tiers_for(BufferingMode::kAsync); tier-- > 0;) {
    const RoomMade made = organizer.make_room(actor, static_cast<TierId>(tier));
    is_short = is_short || made.is_short;
    progress = progress || made.dropped + made.demoted != 0;
    dirty = dirty || made.dirty_in_the_way != 0;
  }
  if (dirty) flusher_.kick(true);
  if (!is_short) return Room::kEnough;
  return progress ? Room::kProgress : Room::kStuck;
}

void OrganizerThread::reclaim_objects(Actor& actor) const {
  ObjectTable& objects = memory_.objects();
  if (std::uint64_t{objects.live_count()} * 10 < std::uint64_t{objects.capacity()} * 9) return;
  objects.reclaim_idle(objects.capacity() / 10, actor.self, actor.owners());
}

}  // namespace cairn::node
