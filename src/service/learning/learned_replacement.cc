// SPDX-License-Identifier: Apache-2.0
#include "service/learning/learned_replacement.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "policy/replacement/experts.h"

namespace cairn::node {
namespace {

// A tier of fewer blocks has smaller segments: an expert with a handful of pages learns nothing.
constexpr std::uint32_t kSegmentsMin = 32;
// A block that was fetched ahead and not used for so long is not expected to be used any more.
constexpr std::uint32_t kUnreadMs = 30'000;
// References between two looks for files that are gone, at least.
constexpr std::uint64_t kLookAgainMin = 4096;
static_assert((LearnedReplacement::kSegmentBlocksMin &
               (LearnedReplacement::kSegmentBlocksMin - 1)) == 0,
              "segments are halved and doubled");

// Almost never the same for two files, and never 0 (Fibonacci hashing; Knuth, TAOCP 3, 6.4).
std::uint32_t short_of(const ObjectKey& key) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  const std::uint64_t mixed = (raw(key.store) * kGolden ^ key.id.inode) * kGolden;
  return static_cast<std::uint32_t>(
             (mixed ^ static_cast<std::uint64_t>(key.id.birth_ns)) * kGolden >> 32) |
         1U;
}

std::uint32_t segment_blocks_for(std::uint32_t blocks) {
  std::uint32_t segment = LearnedReplacement::kSegmentBlocksMin;
  while (segment > 1 && blocks / segment < kSegmentsMin) segment /= 2;
  while (blocks / segment > LearnedReplacement::kSegmentsMax) segment *= 2;
  return segment;
}

// A block that leaves first has none: nobody is expected to want it. Among the blocks that are
// known to be wanted (1), the last leaves first. The blocks that the expert holds, and those that
// were fetched ahead, stay longest.
unsigned claim_of(const BlockView& view) {
  if (view.is_held) return 2;
  return view.until_use < BlockView::kUseFarAway ? 1 : 0;
}

bool leaves_before(const BlockView& left, const BlockView& right, std::uint32_t now_ms) {
  if (left.priority != right.priority) return left.priority < right.priority;
  const unsigned claim = claim_of(left);
  if (claim != claim_of(right)) return claim < claim_of(right);
  if (claim == 1 && left.until_use != right.until_use) return left.until_use > right.until_use;
  return is_older(left, right, now_ms);
}

}  // namespace

LearnedReplacement::LearnedReplacement(const NodeMemory& memory, const std::string& expert,
                                       unsigned kept_free_percent)
    : memory_(memory), name_(expert), files_(memory.objects().capacity(), 0) {
  kept_within_.fill(BlockView::kUseFarAway);
  std::uint32_t blocks = 0;
  for (unsigned index = 0; index < memory.tiers_for(BufferingMode::kAsync); ++index) {
    const std::uint32_t slabs = memory.pool(static_cast<TierId>(index)).slab_count();
    blocks += slabs - static_cast<std::uint32_t>(std::uint64_t{slabs} * kept_free_percent / 100);
    if (slabs == 0 || blocks == 0) continue;
    Tier& tier = tiers_[index];
    tier.segment_blocks = segment_blocks_for(blocks);
    tier.expert = make_expert_named(expert, std::max(blocks / tier.segment_blocks, 1U));
  }
}

void LearnedReplacement::admit_by_value(CostsOf costs_of) {
  costs_of_ = std::move(costs_of);
  CAIRN_CHECK(costs_of_ != nullptr);
  const unsigned count = memory_.tiers_for(BufferingMode::kAsync);
  for (unsigned index = 0; index + 1 < count; ++index) {
    Tier& tier = tiers_[index];
    if (tier.expert == nullptr) continue;
    const std::uint32_t room = memory_.pool(static_cast<TierId>(index)).slab_count();
    std::uint32_t room_below = 0;
    for (unsigned below = index + 1; below < count && room_below == 0; ++below)
      room_below = memory_.pool(static_cast<TierId>(below)).slab_count();
    tier.returns = std::make_unique<ReturnRates>(std::max(room / tier.segment_blocks, 1U),
                                                 room_below / tier.segment_blocks);
  }
}

void LearnedReplacement::on_accesses(std::span<const ToldAccess> batch) {
  const std::lock_guard lock(mutex_);
  for (const ToldAccess& told : batch) {
    const AccessKind kind = told.event.kind;
    const bool is_use = kind >= AccessKind::kMiss && kind <= AccessKind::kWrite;
    if (!is_use || told.event.object == ObjectIndex::kNone) continue;
    note_file(told.event.object);
    for (Tier& tier : tiers_) {
      if (tier.expert != nullptr) reference(tier, told.event);
    }
  }
  for (Tier& tier : tiers_) {
    if (tier.references - tier.looked_at >=
        std::max<std::uint64_t>(kLookAgainMin, tier.pages.size()))
      forget_gone(tier);
  }
  memory_.organizer_board().reads_stay_above.store(is_worth_no_tier_below() ? 1 : 0,
                                                   std::memory_order_relaxed);
}

// The record may have been another file's before. The segments of that one which lie side by side
// from its beginning on are forgotten; the rest fades with time.
void LearnedReplacement::note_file(ObjectIndex object) {
  CAIRN_CHECK(raw(object) < files_.size());
  const std::uint32_t file = short_of(memory_.objects().at(object).key());
  std::uint32_t& known = files_[raw(object)];
  const std::uint32_t before = known;
  known = file;
  if (before == file || before == 0) return;
  for (Tier& tier : tiers_) {
    std::uint64_t key = key_of(object, 0, 1);
    while (tier.pages.find(key) != kNoPage) forget_segment(tier, key++);
  }
}

bool LearnedReplacement::is_gone(ObjectIndex object) const {
  const Object& record = memory_.objects().at(object);
  const bool has_no_name = record.has(kObjectUnlinked) || record.has(kObjectRetired);
  return !record.has(kObjectLive) || (has_no_name && record.opens.load() == 0);
}

void LearnedReplacement::forget_segment(Tier& tier, std::uint64_t key) {
  CAIRN_CHECK(tier.expert != nullptr);
  const PageId page = tier.pages.find(key);
  CAIRN_CHECK(page != kNoPage);
  tier.expert->forget(page);
  if (tier.returns != nullptr) tier.returns->forget(key);
  tier.pages.take_back(key);
  if (tier.last_key == key) tier.last_key = UINT64_MAX;
}

void LearnedReplacement::forget_gone(Tier& tier) const {
  tier.looked_at = tier.references;
  std::vector<std::uint64_t> gone;
  tier.pages.for_each([&](std::uint64_t key, PageId) {
    if (is_gone(static_cast<ObjectIndex>(key >> 32))) gone.push_back(key);
  });
  for (const std::uint64_t key : gone) forget_segment(tier, key);
}

void LearnedReplacement::reference(Tier& tier, const AccessEvent& event) {
  const auto first = static_cast<std::uint32_t>(event.offset / kBlockBytes);
  const std::uint64_t end = event.offset + std::max<std::uint64_t>(event.length, 1) - 1;
  const auto last = static_cast<std::uint32_t>(end / kBlockBytes);
  for (std::uint64_t block = first; block <= last; block += tier.segment_blocks) {
    const std::uint64_t key =
        key_of(event.object, static_cast<std::uint32_t>(block), tier.segment_blocks);
    if (key != tier.last_key) reference(tier, key);
  }
}

void LearnedReplacement::reference(Tier& tier, std::uint64_t key) {
  tier.last_key = key;
  ++tier.references;
  const PageId page = tier.pages.number_for(key, *tier.expert);
  const bool is_hit = tier.expert->reference(page);
  if (!is_hit) ++tier.misses;
  CAIRN_DCHECK(tier.misses <= tier.references);
  if (tier.returns != nullptr) follow_returns(tier, page, key, is_hit);
}

// What leaves the expert's directory, and whether it comes back.
void LearnedReplacement::follow_returns(Tier& tier, PageId page, std::uint64_t key, bool is_hit) {
  Segment& segment = at_page(tier.segments, page);
  // The number was another one's before.
  if (segment.key != key) segment = Segment{key, 0};
  if (segment.uses != UINT32_MAX) ++segment.uses;
  if (!is_hit) tier.returns->note_used(key);
  for (const PageId gone : tier.expert->evicted()) {
    const Segment left = at_page_or(tier.segments, gone, Segment{});
    tier.returns->note_left(left.key, left.uses);
  }
}

// Concerns blocks that are read for the first time.
bool LearnedReplacement::is_worth_no_tier_below() const {
  const ReturnRates* returns = tiers_[raw(TierId::kMemory)].returns.get();
  if (returns == nullptr) return false;
  const double chance = returns->chance(ReturnRates::class_of(1));
  if (chance >= 1) return false;
  for (unsigned tier = 1; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
    const auto id = static_cast<TierId>(tier);
    if (memory_.pool(id).slab_count() != 0 && is_worth_admitting(chance, costs_of_(id)))
      return false;
  }
  return true;
}

double LearnedReplacement::chance_of(const Tier& tier, const BlockView& block) {
  const std::uint64_t key = key_of(block.object, raw(block.number), tier.segment_blocks);
  const PageId page = tier.pages.find(key);
  const Segment segment = page == kNoPage ? Segment{} : at_page_or(tier.segments, page, Segment{});
  const std::uint32_t uses = segment.key == key ? segment.uses : 1;
  return tier.returns->chance(ReturnRates::class_of(uses));
}

bool LearnedReplacement::admits(const BlockView& block, TierId from, TierId to) const {
  if (costs_of_ == nullptr) return true;
  const AdmissionCosts costs = costs_of_(to);
  const std::lock_guard lock(mutex_);
  const Tier& tier = tiers_[raw(from)];
  if (tier.returns == nullptr) return true;
  if (block.until_use == BlockView::kUseNever) return false;
  // It would be the next to leave from there.
  if (block.until_use < BlockView::kUseFarAway) return block.until_use < kept_within_[raw(to)];
  return is_worth_admitting(chance_of(tier, block), costs);
}

void LearnedReplacement::look_up(std::span<BlockView> candidates,
                                 const ReplacementRequest& request) const {
  if (future_ != nullptr) future_->look_up(candidates);
  const std::lock_guard lock(mutex_);
  const Tier& tier = tiers_[raw(request.tier)];
  for (BlockView& view : candidates) {
    view.is_held = view.is_unread && elapsed_ms(request.now_ms, view.recency_ms) < kUnreadMs;
    if (view.is_held || view.until_use != BlockView::kUseUnknown || tier.expert == nullptr)
      continue;
    const PageId page = tier.pages.find(key_of(view.object, raw(view.number), tier.segment_blocks));
    view.is_held = page != kNoPage && tier.expert->holds(page);
  }
}

void LearnedReplacement::note_chosen(std::span<const BlockView> victims, TierId tier) const {
  CAIRN_CHECK(raw(tier) < kept_within_.size());
  std::uint32_t soonest = BlockView::kUseFarAway;
  for (const BlockView& view : victims) soonest = std::min(soonest, view.until_use);
  const std::lock_guard lock(mutex_);
  kept_within_[raw(tier)] = soonest;
}

std::size_t LearnedReplacement::choose(std::span<BlockView> candidates,
                                       const ReplacementRequest& request) const {
  look_up(candidates, request);
  std::sort(candidates.begin(), candidates.end(),
            [&](const BlockView& left, const BlockView& right) {
              return leaves_before(left, right, request.now_ms);
            });
  const std::size_t count = count_for(candidates, request.bytes_wanted);
  CAIRN_CHECK(count <= candidates.size());
  note_chosen(candidates.first(count), request.tier);
  return count;
}

LearnedReplacement::TierReport LearnedReplacement::report(TierId index) const {
  CAIRN_CHECK(raw(index) < tiers_.size());
  const std::size_t known_ahead = future_ != nullptr ? future_->known_ahead() : 0;
  const std::lock_guard lock(mutex_);
  const Tier& tier = tiers_[raw(index)];
  TierReport report;
  if (tier.expert == nullptr) return report;
  report.follows = tier.expert->followed();
  report.references = tier.references;
  report.misses = tier.misses;
  report.known_ahead = known_ahead;
  report.segments = tier.pages.size();
  return report;
}

}  // namespace cairn::node
