// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/tier_movers.h"

#include <chrono>

#include "base/check.h"
#include "service/organizer/uring_writer.h"

namespace cairn::node {

TierMovers::TierMovers(const NodeMemory& memory, Owner self, const PlacementPolicy& placement,
                       const ReplacementPolicy& replacement,
                       std::array<TierLimits, kTiersMax> limits)
    : memory_(memory),
      self_(self),
      placement_(placement),
      replacement_(replacement),
      limits_(limits),
      tiers_(memory.tiers_for(BufferingMode::kAsync)) {
  for (unsigned tier = 0; tier < tiers_; ++tier)
    movers_[tier].thread = std::thread([this, tier] { work(tier); });
}

TierMovers::~TierMovers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  for (Mover& mover : movers_) {
    if (mover.thread.joinable()) mover.thread.join();
  }
}

bool TierMovers::is_short(unsigned tier) const {
  CAIRN_CHECK(tier < kTiersMax);
  const auto id = static_cast<TierId>(tier);
  const BucketPool& pool = memory_.pool(id);
  return pool.slab_count() != 0 && memory_.takes_blocks(id) &&
         memory_.organizer_board().is_short(id, pool.common_slabs());
}

// The organizer announces to clients what each run may take while runs compete or something is
// reserved, and once more when that is over.
bool TierMovers::must_share(unsigned tier) const {
  if (!memory_.takes_blocks(static_cast<TierId>(tier))) return false;
  const TierAccounts& accounts = memory_.accounts().tiers[tier];
  return accounts.share_floor.load(std::memory_order_relaxed) != 0 ||
         accounts.reserved_slabs() != 0 ||
         memory_.organizer_board().low_slabs[tier].load(std::memory_order_relaxed) !=
             limits_[tier].low_slabs ||
         is_contended(use_of(memory_.accounts(), static_cast<TierId>(tier)));
}

RoomMade TierMovers::make_room(const Wanted& wanted) {
  std::unique_lock lock(mutex_);
  Mover* fastest = nullptr;
  for (unsigned tier = 0; tier < tiers_; ++tier) {
    Mover& mover = movers_[tier];
    if (!mover.is_asked && (is_short(tier) || must_share(tier))) {
      mover.is_asked = true;
      mover.wanted = wanted[tier];
    }
    if (mover.is_asked && fastest == nullptr) fastest = &mover;
  }
  if (fastest != nullptr) {
    CAIRN_CHECK(awaited_ == nullptr);
    awaited_ = fastest;
    asked_.notify_all();
    done_.wait(lock, [&] { return !fastest->is_asked; });
    awaited_ = nullptr;
  }
  RoomMade sum;
  for (unsigned tier = 0; tier < tiers_; ++tier) {
    Mover& mover = movers_[tier];
    if (mover.is_asked) {
      sum.is_going_on = true;
      continue;
    }
    sum.dropped += mover.made.dropped;
    sum.demoted += mover.made.demoted;
    sum.left_memory += mover.made.left_memory;
    sum.dirty_in_the_way += mover.made.dirty_in_the_way;
    sum.is_short = sum.is_short || mover.made.is_short;
    mover.made = RoomMade();
  }
  return sum;
}

bool TierMovers::has_room_below(unsigned tier) const {
  for (unsigned below = tier + 1; below < tiers_; ++below) {
    if (memory_.takes_blocks(static_cast<TierId>(below)) && !is_short(below)) return true;
  }
  return false;
}

// The room may be some way off: the tier below waits for its own device.
void TierMovers::wait_for_room_below(unsigned tier, std::uint32_t wanted) {
  constexpr std::chrono::milliseconds kLook(1);
  std::unique_lock lock(mutex_);
  while (tier + 1 < tiers_ && movers_[tier + 1].is_asked && is_short(tier + 1) && !stopping_) {
    if (wanted != 0 && has_room_below(tier)) return;
    done_.wait_for(lock, kLook);
  }
}

void TierMovers::work(unsigned tier) {
  CAIRN_CHECK(tier < tiers_);
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[tier % ClientSlot::kShards];
  UringWriter writer;
  Organizer organizer(memory_, placement_, replacement_, writer, limits_);
  for (;;) {
    std::uint32_t wanted = 0;
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [&] { return stopping_ || movers_[tier].is_asked; });
      if (stopping_) return;
      wanted = movers_[tier].wanted;
    }
    wait_for_room_below(tier, wanted);
    const RoomMade made = organizer.make_room(actor, static_cast<TierId>(tier), wanted);
    actor.drop_leases();
    bool is_awaited = false;
    {
      const std::lock_guard lock(mutex_);
      CAIRN_CHECK(movers_[tier].is_asked);
      movers_[tier].made = made;
      movers_[tier].is_asked = false;
      is_awaited = awaited_ == &movers_[tier];
    }
    done_.notify_all();
    if (!is_awaited) memory_.organizer_board().bell.ring();
  }
}

}  // namespace cairn::node
