// SPDX-License-Identifier: Apache-2.0
#include "node/learned_replacement.h"

#include <algorithm>

#include "replacement/experts.h"

namespace cairn::node {
namespace {

// A tier of fewer blocks has smaller segments: an expert with a handful of pages learns nothing.
constexpr std::uint32_t kSegmentsMin = 32;
// What was fetched ahead and nobody used for so long is not waited for any more.
constexpr std::uint32_t kUnreadMs = 30'000;

std::uint32_t segment_blocks_for(std::uint32_t blocks) {
  std::uint32_t segment = LearnedReplacement::kSegmentBlocksMin;
  while (segment > 1 && blocks / segment < kSegmentsMin) segment /= 2;
  while (blocks / segment > LearnedReplacement::kSegmentsMax) segment *= 2;
  return segment;
}

}  // namespace

LearnedReplacement::LearnedReplacement(const NodeMemory& memory, const std::string& expert,
                                       unsigned kept_free_percent)
    : name_(expert) {
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

void LearnedReplacement::take(std::span<const ToldAccess> batch) {
  const std::lock_guard lock(mutex_);
  for (const ToldAccess& told : batch) {
    const AccessKind kind = told.event.kind;
    const bool is_use = kind >= AccessKind::kMiss && kind <= AccessKind::kWrite;
    if (!is_use || told.event.object == ObjectIndex::kNone) continue;
    for (Tier& tier : tiers_) {
      if (tier.expert != nullptr) reference(tier, told.event);
    }
  }
}

void LearnedReplacement::reference(Tier& tier, const AccessEvent& event) {
  const auto first = static_cast<std::uint32_t>(event.offset / kBlockBytes);
  const std::uint64_t end = event.offset + std::max<std::uint64_t>(event.length, 1) - 1;
  const auto last = static_cast<std::uint32_t>(end / kBlockBytes);
  for (std::uint64_t block = first; block <= last; block += tier.segment_blocks) {
    const std::uint64_t key =
        key_of(event.object, static_cast<std::uint32_t>(block), tier.segment_blocks);
    if (key == tier.last_key) continue;
    tier.last_key = key;
    ++tier.references;
    if (!tier.expert->reference(tier.pages.number_for(key, *tier.expert))) ++tier.misses;
  }
}

std::size_t LearnedReplacement::choose(std::span<BlockView> candidates,
                                       const ReplacementRequest& request) const {
  {
    const std::lock_guard lock(mutex_);
    const Tier& tier = tiers_[raw(request.tier)];
    for (BlockView& view : candidates) {
      view.is_held = false;
      if (view.is_unread && request.now_ms - view.recency_ms < kUnreadMs) {
        view.is_held = true;
      } else if (tier.expert != nullptr) {
        const PageId page =
            tier.pages.find(key_of(view.object, raw(view.number), tier.segment_blocks));
        view.is_held = page != kNoPage && tier.expert->holds(page);
      }
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](const BlockView& left, const BlockView& right) {
              if (left.priority != right.priority) return left.priority < right.priority;
              if (left.is_held != right.is_held) return right.is_held;
              return is_older(left, right, request.now_ms);
            });
  return count_for(candidates, request.bytes_wanted);
}

LearnedReplacement::TierReport LearnedReplacement::report(TierId index) const {
  const std::lock_guard lock(mutex_);
  const Tier& tier = tiers_[raw(index)];
  TierReport report;
  if (tier.expert == nullptr) return report;
  report.follows = tier.expert->followed();
  report.references = tier.references;
  report.misses = tier.misses;
  return report;
}

}  // namespace cairn::node
