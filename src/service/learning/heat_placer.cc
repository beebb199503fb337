// SPDX-License-Identifier: Apache-2.0
#include "service/learning/heat_placer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cairn::node {

HeatPlacer::HeatPlacer(std::span<const std::uint64_t> capacities, const HeatTrigger::Limits& limits,
                       std::int64_t now_ns, Carry carry)
    : limits_(limits), carry_(std::move(carry)), tiers_(capacities), trigger_(limits, now_ns) {}

void HeatPlacer::note(ObjectIndex object, FileHeat& heat, bool is_loaded) {
  const auto [shift, is_new] = shifts_.try_emplace(object, heat.segment_shift());
  if (!is_new && shift->second != heat.segment_shift()) {
    forget(object);
    shifts_.emplace(object, heat.segment_shift());
  }
  pace_ = heat.pace();
  const std::vector<std::uint32_t> changed = heat.take_changed();
  for (const std::uint32_t number : changed) {
    if (heat.score(number).references() < kReferencesMin) continue;
    const HeatRange range = heat.range_of(number);
    const std::uint64_t left = heat.file_bytes() - std::min(heat.file_bytes(), range.offset);
    const SegmentKey key{object, number};
    changed_.insert_or_assign(
        key, ChangedSegment{key, heat.fading(number), std::min(range.bytes, left)});
  }
  trigger_.note_changes(is_loaded ? limits_.changes_max : changed.size());
}

void HeatPlacer::forget(ObjectIndex object) {
  tiers_.remove_object(object);
  shifts_.erase(object);
  changed_.erase(changed_.lower_bound({object, 0}), changed_.upper_bound({object, UINT32_MAX}));
}

void HeatPlacer::place(std::int64_t now_ns) {
  if (!trigger_.is_due(now_ns)) return;
  trigger_.reset(now_ns);
  std::vector<ChangedSegment> changed;
  changed.reserve(changed_.size());
  for (const auto& [key, segment] : changed_) changed.push_back(segment);
  changed_.clear();
  for (const HeatMove& move : tiers_.place(changed, pace_.steps(now_ns))) {
    const std::uint64_t segment_bytes = std::uint64_t{kBlockBytes} << shifts_[move.key.object];
    const HeatRange range{move.key.segment * segment_bytes, move.bytes};
    carry_(move.key.object, range, move.to, move.is_promotion());
  }
}

}  // namespace cairn::node
