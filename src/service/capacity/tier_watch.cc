// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/tier_watch.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/size_text.h"
#include "service/organizer/drop_clean.h"
#include "service/organizer/uring_writer.h"

namespace cairn::node {
namespace {

constexpr int kNothingLeftMs = 3'600'000;
// While something is left in a tier that is out of service: the next try, rarer and rarer.
constexpr int kTryMsMin = 50;
constexpr int kTryMsMax = 5'000;
// So long after a tier has left service, a client may still place a block there that looked before.
constexpr int kLateMs = 2'000;

}  // namespace

std::string device_error_text(int error) {
  return error == EBADMSG ? "bytes are not those that were written (checksum)"
                          : std::strerror(error);
}

void TierWatch::start() {
  CAIRN_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void TierWatch::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  of_.memory.failure_board().bell.ring_anyway();
  thread_.join();
}

void TierWatch::run() {
  Actor actor;
  actor.memory = &of_.memory;
  actor.self = of_.self;
  actor.counters = &of_.memory.slot(of_.self.slot()).shards[1];
  UringWriter writer;
  MoveBatch batch(of_.memory, writer);
  Bell& bell = of_.memory.failure_board().bell;
  int again_ms = kTryMsMin;
  std::uint32_t left = 0;
  std::int64_t next_ms = 0;  // failures ring also while it waits for the next try
  std::int64_t late_until_ms = 0;
  while (!stopping_.load()) {
    const std::uint32_t heard = bell.listen();
    const bool is_news = has_news();
    for (unsigned tier = 1; tier < of_.memory.tier_count(); ++tier) {
      if (is_due(tier)) take_out(tier);
    }
    const std::int64_t now_ms = monotonic_ns() / 1'000'000;
    if (is_news) late_until_ms = now_ms + kLateMs;
    const auto goes_on = [&] { return left != 0 || now_ms < late_until_ms; };
    if (is_news || (goes_on() && now_ms >= next_ms)) {
      const std::uint32_t left_before = std::exchange(left, empty_all(actor, batch));
      again_ms = is_news || left != left_before ? kTryMsMin : std::min(2 * again_ms, kTryMsMax);
      next_ms = now_ms + again_ms;
      // The store takes what the other tiers have no room for. Once: all that is due is stored
      // then, and what cannot be read stays.
      if (left != 0 && (is_news || left != left_before)) of_.flusher.kick(true);
    }
    const int pause_ms =
        goes_on() ? static_cast<int>(std::max<std::int64_t>(next_ms - now_ms, 1)) : kNothingLeftMs;
    bell.sleep(heard, pause_ms, [this] { return stopping_.load() || has_news(); });
  }
}

// A service that follows a dead one finds tiers that are out already.
bool TierWatch::is_due(unsigned tier) const {
  const FailureBoard& board = of_.memory.failure_board();
  const bool is_failing = board.is_out(static_cast<TierId>(tier)) ||
                          board.tiers[tier].is_failing(monotonic_coarse_ms());
  return is_failing && (taken_out_ >> tier & 1) == 0;
}

bool TierWatch::has_news() const {
  for (unsigned tier = 1; tier < of_.memory.tier_count(); ++tier) {
    if (is_due(tier)) return true;
  }
  return false;
}

std::uint32_t TierWatch::empty_all(Actor& actor, MoveBatch& batch) {
  std::uint32_t left = 0;
  for (unsigned tier = 1; tier < of_.memory.tier_count(); ++tier) {
    if ((taken_out_ >> tier & 1) != 0) left += empty(actor, batch, tier);
  }
  actor.drop_leases();
  return left;
}

void TierWatch::take_out(unsigned tier) {
  CAIRN_CHECK(tier != 0 && tier < of_.memory.tier_count());
  FailureBoard& board = of_.memory.failure_board();
  taken_out_ |= 1U << tier;
  const bool is_news = (board.out_of_service.fetch_or(1U << tier) >> tier & 1) == 0;
  OrganizerBoard& organizer = of_.memory.organizer_board();
  organizer.low_slabs[tier].store(0, std::memory_order_relaxed);
  const std::uint64_t lost_slabs = of_.accounts.leave_tier(tier);
  organizer.bell.ring_anyway();
  if (is_news) tell(tier, lost_slabs);
}

void TierWatch::tell(unsigned tier, std::uint64_t lost_slabs) const {
  const FailureBoard::OfTier& failures = of_.memory.failure_board().tiers[tier];
  const bool is_swap = tier > of_.config.tiers.size();
  const std::string& directory =
      is_swap ? of_.config.swap_directory : of_.config.tiers[tier - 1].directory;
  const int error = static_cast<int>(failures.error.load());
  std::string text = "tier " + tier_name(of_.config, tier) + " in " + directory +
                     " is out of service: " + std::to_string(failures.count.load()) +
                     " operations failed, the last one with: " + device_error_text(error) +
                     ". Its data is moved off. Mend the device, or leave the tier out of the "
                     "configuration, before the next node";
  if (lost_slabs != 0) {
    text += "; " + format_size(lost_slabs * kBlockBytes) +
            " that were reserved of it cannot be reserved elsewhere";
  }
  of_.warn(text);
}

// A block that somebody is at comes at the next try. A tier that does not answer counts as more
// than full.
std::uint32_t TierWatch::empty(Actor& actor, MoveBatch& batch, unsigned tier) {
  const NodeMemory& memory = of_.memory;
  if (!answers(tier)) return memory.pool(static_cast<TierId>(tier)).slab_count() + 1;
  std::uint32_t left = 0;
  memory.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
    const BlockDescriptor& block = memory.block(bucket);
    if (block.object_index() == ObjectIndex::kNone || block.state() == BlockState::kFree) return;
    if (drop_clean(actor, bucket, PlacementReason::kTierFailed)) return;
    ++left;
    if (stopping_.load() || !move(actor, batch, bucket)) return;
    if (batch.is_full()) left -= batch.advance(actor);
  });
  return left - batch.finish(actor);
}

// Requires: the tier is out of service.
bool TierWatch::answers(unsigned tier) {
  FailureBoard& board = of_.memory.failure_board();
  const auto id = static_cast<TierId>(tier);
  if (!board.hangs(id)) return true;
  if (probes_[tier] == nullptr) probes_[tier] = std::make_unique<DeviceProbe>(of_.memory.tier(id));
  if (!probes_[tier]->has_answered()) return false;
  probes_[tier].reset();
  board.tiers[tier].hangs.store(0, std::memory_order_relaxed);
  return true;
}

// To the next slower tier that has room, else to the next faster one.
bool TierWatch::move(Actor& actor, MoveBatch& batch, BucketIndex bucket) const {
  const NodeMemory& memory = of_.memory;
  const ObjectIndex object = memory.block(bucket).object_index();
  const unsigned tiers = memory.tiers_for(memory.objects().at(object).handling().mode);
  const unsigned from = raw(memory.tier_of(bucket));
  const auto moves_to = [&](unsigned tier) {
    const auto target = static_cast<TierId>(tier);
    return has_room(target) && batch.add(actor, bucket, target, PlacementReason::kTierFailed);
  };
  for (unsigned tier = from + 1; tier < tiers; ++tier) {
    if (moves_to(tier)) return true;
  }
  for (unsigned tier = from; tier-- > 0;) {
    if (moves_to(tier)) return true;
  }
  return false;
}

// What the organizer would only push out again finds no room.
bool TierWatch::has_room(TierId tier) const {
  const BucketPool& pool = of_.memory.pool(tier);
  const std::uint32_t low = of_.memory.organizer_board().low_slabs[raw(tier)].load();
  return of_.memory.takes_blocks(tier) && pool.common_slabs() > low;
}

}  // namespace cairn::node
