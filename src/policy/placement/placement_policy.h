// SPDX-License-Identifier: Apache-2.0
// The interface of placement policies, which say which tiers take the bytes of a request.
//
// A policy sees the node's hierarchy as tiers i = 0..n-1, fastest first, each with its remaining
// capacity C_i, bandwidth BW_i and access latency A_i (Kougkas, Devarajan, Sun: "Hermes: a
// heterogeneous-aware multi-tiered distributed I/O buffering system", HPDC 2018, and JCST 35(1),
// 2020, appendix). Below the last tier lies the backing store, which takes everything that no tier
// takes.
//
// A policy is pure: values in, decision out; no clock, no lock, no I/O, and the same answer for
// equal views and requests (randomness follows from request.sequence). To add one, write `<name>.h`
// beside this header, put it into the table in policy/placement/policies.h, and the conformance
// suite (placement_policy_test.cc) runs against it by itself.
//
// Thread safety: a policy has no state; solve() from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace cairn {

// One tier as a policy sees it. Views come fastest tier first; ids ascend.
struct TierView {
  TierId id{};
  std::uint64_t capacity_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t reserve_bytes = 0;  // to be left free, so that the next write finds room at once
  double bandwidth = 1e9;           // bytes per second of a write, measured
  double latency = 1e-6;            // seconds per access, measured
  // Seconds that bytes placed now wait for those placed before; 0 where nobody counts. A policy
  // that minimises time adds them to the latency, so that devices that work side by side are all
  // used.
  // Plugins do not see it: theirs may count the latency for each block.
  double backlog = 0;
  // Least hotness (UnitView::hotness) that belongs into this tier; 0 while it need not be rationed.
  // hotness_thresholds() in policy/placement/hot_data.h derives it.
  double hotness_min = 0;

  // The room that a request may take.
  std::uint64_t usable_bytes() const {
    return free_bytes > reserve_bytes ? free_bytes - reserve_bytes : 0;
  }
};

// The unit that the request belongs to: a file, a region of a shared file, later an array chunk
// ("dispersion unit" in the papers).
struct UnitView {
  std::uint64_t bytes = 0;                                // of the whole unit, as known
  double hotness = 0;                                     // accesses per second and MiB; 0 unknown
  std::array<std::uint64_t, kTiersMax> resident_bytes{};  // by tier id
};

struct PlacementRequest {
  std::uint64_t bytes = 0;
  TierId fastest = TierId::kMemory;  // no tier above this one
  // The backing store: what it costs to place nothing. 0: unknown, taken as slower than any tier.
  double store_bandwidth = 0;
  double store_latency = 0;
  UnitView unit;
  std::uint64_t sequence = 0;  // counts decisions
  // What part of the time of a move the request waits for: 1 all of it, less when the organizer
  // moves while the program computes or writes elsewhere.
  double move_share = 1;
};

// One step of a decision, in the order in which they are carried out.
struct PlacementStep {
  enum class Kind : std::uint8_t {
    // Move `bytes` of what is in `tier` to the tiers below first. That room is the request's, also
    // in a tier that is short of its reserve.
    kMakeRoom,
    kPlace  // put `bytes` of the request into `tier`
  };
  Kind kind = Kind::kPlace;
  TierId tier{};
  std::uint64_t bytes = 0;
};

// A decision: at most one place and one making of room per tier. The bytes without a place
// go to the backing store.
struct Placement {
  static constexpr std::size_t kStepsMax = 2 * kTiersMax;
  std::array<PlacementStep, kStepsMax> steps{};
  std::size_t count = 0;
  // The cost by the policy's model: seconds where it minimises time, else the measure
  // that its header names.
  double seconds = 0;

  std::span<const PlacementStep> all() const { return {steps.data(), count}; }
  void add(PlacementStep::Kind kind, TierId tier, std::uint64_t bytes) {
    if (bytes != 0 && count < kStepsMax) steps[count++] = PlacementStep{kind, tier, bytes};
  }
  std::uint64_t placed_bytes() const {
    std::uint64_t sum = 0;
    for (const PlacementStep& step : all())
      sum += step.kind == PlacementStep::Kind::kPlace ? step.bytes : 0;
    return sum;
  }
  std::uint64_t bytes_in(TierId tier) const {
    std::uint64_t sum = 0;
    for (const PlacementStep& step : all())
      sum += step.kind == PlacementStep::Kind::kPlace && step.tier == tier ? step.bytes : 0;
    return sum;
  }
};

// How a plan for many blocks (policy/placement/placement_plan.h) is made of a policy's decisions.
enum class PlanOrder : std::uint8_t {
  kWindow,    // one decision about all the bytes, followed fastest tier first
  kPerBlock,  // each block is a decision of its own
  kPerUnit    // each dispersion unit is; its blocks stay together
};

class PlacementPolicy {
 public:
  virtual const char* name() const = 0;
  // Places as much of request.bytes as the usable room of `tiers` at and below request.fastest
  // allows, never more than that room after the room that its own steps make; nothing where there
  // is none. Blocks (kBlockBytes) are not divided. Exceptions: a store of known speed is given what
  // it takes sooner than any tier by a policy that minimises time, and a policy of undivided
  // requests (fastest-with-room) places all or nothing.
  virtual Placement solve(std::span<const TierView> tiers,
                          const PlacementRequest& request) const = 0;

  virtual PlanOrder plan_order() const { return PlanOrder::kWindow; }

  // The tier for a request that must not be divided: the first that solve() gives all of it to.
  std::optional<TierId> choose(std::span<const TierView> tiers,
                               const PlacementRequest& request) const {
    const Placement placement = solve(tiers, request);
    for (const PlacementStep& step : placement.all()) {
      if (step.kind == PlacementStep::Kind::kPlace && step.bytes == request.bytes) return step.tier;
    }
    return std::nullopt;
  }

 protected:
  ~PlacementPolicy() = default;
};

}  // namespace cairn
