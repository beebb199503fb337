// SPDX-License-Identifier: Apache-2.0
// How hot files are: accesses per second and MiB, smoothed, from the counters of their resident
// blocks.
//
// A read hit in RAM is sampled, and then stands for Actor::kSampleEvery of them; what is read in a
// file tier is counted each time.
//
// Thread safety: one thread. Ownership: borrows the memory.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "policy/placement/placement_policy.h"
#include "service/organizer/organizer.h"

namespace cairn::node {

class Hotness {
 public:
  explicit Hotness(const NodeMemory& memory) : memory_(memory) {}

  // Looks at all blocks and sets the home of every object whose policy is in `policies` (a bit
  // each), but of those that a rule has given one: they take their room from the others. `tiers`
  // are the views of all tiers, whose hotness_min is set. Returns files that are in use and have
  // blocks below their home, the hottest first, at most kRisingMax.
  static constexpr std::size_t kRisingMax = 1024;
  std::vector<RisingFile> rank(std::uint32_t policies, std::span<TierView> tiers);

 private:
  struct History {
    std::uint64_t accesses = 0;  // sum of the blocks' counters when last seen
    std::uint64_t bytes = 0;     // that were resident then
    double per_second = 0;       // smoothed
    bool is_used = false;        // since the last look
  };
  struct Measured {
    std::uint64_t accesses = 0;
    std::uint64_t bytes = 0;
    unsigned lowest = 0;  // the slowest tier that has some of it
  };
  std::unordered_map<std::uint32_t, Measured> measure(std::uint32_t policies) const;

  const NodeMemory& memory_;
  std::int64_t last_ns_ = 0;
  std::unordered_map<std::uint32_t, History> history_;
};

}  // namespace cairn::node
