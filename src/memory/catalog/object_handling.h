// SPDX-License-Identifier: Apache-2.0
// How an object is treated, packed into its flags: what the rules said when it was last opened.
//
//   bit 0  durability:1, which an object has in a field of its own
//   bit 8  mode:2  trigger:2  policy:4  home:4  pinned:1  priority:3  prefetch:3  parts:5
//
// All zero is what a node without rules does: persistent-async, periodic, durable in the store, the
// default policy, no tier of its own, priority 4, all parts alike.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/file_rule.h"
#include "base/handling.h"
#include "base/ids.h"

namespace cairn {

struct ObjectHandling {
  BufferingMode mode = BufferingMode::kAsync;
  FlushTrigger trigger = FlushTrigger::kPeriodic;
  Durability durability = Durability::kStore;
  std::uint8_t policy = 0;     // index of the node's policies; 0 is the default one
  std::optional<TierId> home;  // new blocks go there first, and what is there is not moved up
  bool pinned = false;         // the organizer leaves its blocks where they are
  std::uint8_t priority = kPriorityNormal;
  PrefetchHint prefetch = PrefetchHint::kNormal;
  std::uint8_t parts = 0;  // set of the node's PartTable: parts of the file are treated otherwise

  static constexpr std::uint8_t kPriorityNormal = 4;
  static constexpr std::uint8_t kPriorityMax = 7;
  // Whether the node may fetch what it foresees of the file.
  constexpr bool is_fetched_ahead() const {
    return prefetch != PrefetchHint::kNone && prefetch != PrefetchHint::kRandom;
  }
  // What an object's flags have of it.
  static constexpr std::uint32_t kMask = 0xffffffU << 8;
  static constexpr std::uint32_t kDurabilityBit = 1;

  static constexpr ObjectHandling from_bits(std::uint32_t bits) {
    ObjectHandling handling;
    handling.mode = static_cast<BufferingMode>(bits >> 8 & 3);
    handling.trigger = static_cast<FlushTrigger>(bits >> 10 & 3);
    handling.durability = static_cast<Durability>(bits & kDurabilityBit);
    handling.policy = bits >> 12 & 15;
    if (const std::uint32_t home = bits >> 16 & 15; home != 0)
      handling.home = static_cast<TierId>(home - 1);
    handling.pinned = (bits >> 20 & 1) != 0;
    handling.priority = static_cast<std::uint8_t>((bits >> 21 & 7) ^ kPriorityNormal);
    handling.prefetch = static_cast<PrefetchHint>(bits >> 24 & 7);
    handling.parts = static_cast<std::uint8_t>(bits >> 27);
    return handling;
  }
  constexpr std::uint32_t bits() const {
    return static_cast<std::uint32_t>(durability) | static_cast<std::uint32_t>(mode) << 8 |
           static_cast<std::uint32_t>(trigger) << 10 | std::uint32_t{policy} << 12 |
           (home ? raw(*home) + 1 : 0) << 16 | std::uint32_t{pinned} << 20 |
           static_cast<std::uint32_t>(priority ^ kPriorityNormal) << 21 |
           static_cast<std::uint32_t>(prefetch) << 24 | std::uint32_t{parts} << 27;
  }
  friend constexpr bool operator==(const ObjectHandling&, const ObjectHandling&) = default;
};
static_assert(ObjectHandling().bits() == 0, "a node without rules does not touch the flags");

}  // namespace cairn
