// SPDX-License-Identifier: Apache-2.0
// Where new blocks go, as the service has decided and the clients carry out: a plan for each
// policy, and what the plan means for single files.
//
// The service alone writes it (service/capacity/placement_engine.h). Clients read it where they
// give a block its first bucket.
//
// Thread safety: one writer, any readers; each word is taken by itself, and a plan that is half old
// is as good as either. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "memory/tiers/published_plan.h"

namespace cairn {

struct alignas(64) PlacementBoard {
  // By the number of the policy.
  PublishedPlan plans[kPlansMax];
  // So many blocks of a new file may go to RAM, those behind them go below: a policy rations the
  // tier. 0: no limit.
  std::atomic<std::uint32_t> memory_blocks[kPlansMax];
  // A bit for each policy that keeps the pieces of a file together.
  std::atomic<std::uint32_t> keeps_together;
  // A bit for each policy that would rather have room made in RAM than place a written block below:
  // the organizer makes it, and the writer waits.
  std::atomic<std::uint32_t> makes_room;
  // The plans hold while a tier has between so many and so many free slabs; outside of that its
  // users wake the organizer.
  std::atomic<std::uint32_t> plan_low_slabs[kTiersMax];
  std::atomic<std::uint32_t> plan_high_slabs[kTiersMax];

  bool is_together(unsigned policy) const { return is_set(keeps_together, policy); }
  bool is_making_room(unsigned policy) const { return is_set(makes_room, policy); }

 private:
  static bool is_set(const std::atomic<std::uint32_t>& bits, unsigned policy) {
    return (bits.load(std::memory_order_relaxed) >> policy & 1) != 0;
  }
};
static_assert(kPlansMax <= 32, "a policy is a bit of a word");
static_assert(sizeof(PlacementBoard) % 64 == 0, "whole lines");

}  // namespace cairn
