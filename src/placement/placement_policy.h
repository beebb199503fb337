// SPDX-License-Identifier: Apache-2.0
// Which tier takes a block that needs a place: the interface of placement policies.
//
// A policy is pure: values in, decision out; no clock, no lock, no I/O. To add one, write
// `<name>.h` beside this header, put it into the table in placement/policies.h, and the conformance
// suite (placement_policy_test.cc) runs against it by itself.
//
// Thread safety: a policy has no state; choose() from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace cairn {

// One tier as a policy sees it. Views come fastest tier first.
struct TierView {
  TierId id{};
  std::uint64_t capacity_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t reserve_bytes = 0;  // to be left free, so that the next write finds room at once
};

struct PlacementRequest {
  std::uint64_t bytes = 0;
  TierId fastest = TierId::kMemory;  // no tier above this one
};

class PlacementPolicy {
 public:
  virtual const char* name() const = 0;
  // Returns: a tier of `tiers`, not above request.fastest, that has the room; nothing when there is
  // none.
  virtual std::optional<TierId> choose(std::span<const TierView> tiers,
                                       const PlacementRequest& request) const = 0;

 protected:
  ~PlacementPolicy() = default;
};

}  // namespace cairn
