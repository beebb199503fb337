// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/hotness.h"

#include <algorithm>

#include "base/clock.h"
#include "policy/placement/hot_data.h"

namespace cairn::node {
namespace {

// Exponential smoothing: a rate that stops is half forgotten after two rounds.
constexpr double kNewShare = 0.3;

}  // namespace

std::unordered_map<std::uint32_t, Hotness::Measured> Hotness::measure(
    std::uint32_t policies) const {
  std::unordered_map<std::uint32_t, Measured> result;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    memory_.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
      const BlockDescriptor& block = memory_.block(bucket);
      const ObjectIndex object = block.object_index();
      if (object == ObjectIndex::kNone || block.state() == BlockState::kFree) return;
      if ((policies >> memory_.objects().at(object).handling().policy & 1) == 0) return;
      Measured& measured = result[raw(object)];
      measured.accesses += block.frequency();
      measured.bytes += kBlockBytes;
      measured.lowest = tier;
    });
  }
  return result;
}

std::vector<RisingFile> Hotness::rank(std::uint32_t policies, std::span<TierView> tiers) {
  const std::int64_t now = monotonic_ns();
  const double seconds = last_ns_ == 0 ? 1 : static_cast<double>(now - last_ns_) / 1e9;
  last_ns_ = now;
  const auto measured = measure(policies);
  std::erase_if(history_, [&](const auto& entry) { return !measured.contains(entry.first); });
  std::vector<HotUnit> units;
  for (const auto& [object, now_measured] : measured) {
    const Object& record = memory_.objects().at(static_cast<ObjectIndex>(object));
    if (const auto home = record.handling().home; home && record.is_marked(kMarkHomeRuled)) {
      if (raw(*home) < tiers.size()) tiers[raw(*home)].reserve_bytes += now_measured.bytes;
      continue;
    }
    History& history = history_[object];
    const std::uint64_t fresh =
        now_measured.accesses - std::min(now_measured.accesses, history.accesses);
    // A block counts as accessed once when it is placed, which is no use of it.
    const std::uint64_t arrived =
        (now_measured.bytes - std::min(now_measured.bytes, history.bytes)) / kBlockBytes;
    const std::uint64_t used = fresh - std::min(fresh, arrived);
    const double rate = static_cast<double>(used) / std::max(seconds, 1e-3);
    history.per_second =
        history.accesses == 0 ? rate : history.per_second * (1 - kNewShare) + rate * kNewShare;
    history.is_used = used != 0;
    history.accesses = now_measured.accesses;
    history.bytes = now_measured.bytes;
    const double mebibytes = static_cast<double>(now_measured.bytes) / (1 << 20);
    units.push_back(HotUnit{history.per_second / mebibytes, now_measured.bytes, object, TierId{}});
  }
  hotness_thresholds(units, tiers);
  std::vector<RisingFile> rising;
  for (const HotUnit& unit : units) {
    Object& record = memory_.objects().at(static_cast<ObjectIndex>(unit.id));
    ObjectHandling handling = record.handling();
    // Nobody has asked for more: it may be on its way to the tier that it is staged in.
    const bool is_raised = handling.home && unit.home < *handling.home;
    if (handling.home != unit.home && (!is_raised || unit.hotness > 0)) {
      handling.home = unit.home;
      record.set_handling(handling);
    }
    const bool is_below = raw(unit.home) < measured.at(unit.id).lowest;
    if (history_[unit.id].is_used && is_below && rising.size() < kRisingMax)
      rising.push_back(RisingFile{static_cast<ObjectIndex>(unit.id), unit.home});
  }
  return rising;
}

}  // namespace cairn::node
