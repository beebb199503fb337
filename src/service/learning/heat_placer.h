// SPDX-License-Identifier: Apache-2.0
// Moves segments by their scores: what has become hot is fetched and brought up, what it displaces
// goes down (policy/heat/tier_heat.h: algorithm 2 of Kougkas, Devarajan, Sun: JCST 35(1), 2020),
// when enough scores have changed or the last time is long enough ago.
//
// It has a part of each tier for this. A segment counts from its second reference on: what was read
// once says nothing. Only files that are open are placed; one that is opened again with the heat
// map of its last epoch is placed at once.
//
// Thread safety: none. Ownership: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "policy/heat/file_heat.h"
#include "policy/heat/heat_trigger.h"
#include "policy/heat/tier_heat.h"

namespace cairn::node {

class HeatPlacer {
 public:
  // Carries out that a range of a file is to be in `to`; nothing: nowhere. `is_promotion`: in a
  // faster tier than before.
  using Carry = std::function<void(ObjectIndex object, const HeatRange& range,
                                   std::optional<TierId> to, bool is_promotion)>;

  // `capacities`: as TierHeat's.
  HeatPlacer(std::span<const std::uint64_t> capacities, const HeatTrigger::Limits& limits,
             std::int64_t now_ns, Carry carry);

  // Scores of the file's map have changed, all of them if it was `loaded`.
  void note(ObjectIndex object, FileHeat& heat, bool is_loaded);
  // The file is closed, or its record is another file's.
  void forget(ObjectIndex object);
  // Carries out what has changed, if it is time.
  void place(std::int64_t now_ns);

 private:
  static constexpr std::uint32_t kReferencesMin = 2;

  const HeatTrigger::Limits limits_;
  const Carry carry_;
  TierHeat tiers_;
  HeatTrigger trigger_;
  std::map<SegmentKey, ChangedSegment> changed_;
  std::map<ObjectIndex, unsigned> shifts_;  // of the maps that are open
  HeatPace pace_;
};

}  // namespace cairn::node
