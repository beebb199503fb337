// SPDX-License-Identifier: Apache-2.0
// The node's placement policies at work: solves each one that is in use for the room that there is,
// publishes its plan to the clients, and solves it again when the room has changed by a step.
//
// The hot path does not feel it: a client reads a byte of a published pattern per block
// (memory/tiers/published_plan.h); solving happens in the organizer's thread.
//
// Policies that place by hotness (hot-data) have each file's home tier set here, from what the
// blocks' counters say of its accesses (service/capacity/hotness.h).
//
// Thread safety: number_of() and name_of() from any thread; refresh() and rank() from one.
// Ownership: owns loaded plugins, borrows the memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "policy/placement/placement_plan.h"
#include "policy/placement/placement_policy.h"
#include "service/capacity/hotness.h"
#include "service/plugins/plugin_policy.h"
#include "service/profiler/tier_figures.h"

namespace cairn::node {

class PlacementEngine {
 public:
  // `figures` are those of each tier, the RAM tier first; `complain` hears of plugins that do not
  // do what they should.
  PlacementEngine(const NodeMemory& memory, std::vector<profiler::TierFigures> figures,
                  PluginPolicy::Listener complain);

  // The number under which a policy's plan is published; 0 is the node's own. A policy that nobody
  // named before is put to work. Errors: kNotFound with the names that there are, kExhausted when
  // too many are in use, or why a plugin cannot be loaded.
  Result<std::uint8_t> number_of(const std::string& name);
  std::string name_of(std::uint8_t number) const;
  // The node's own policy: what the organizer asks.
  const PlacementPolicy& default_policy() const { return *default_policy_; }

  // Solves anew what no longer fits the room that there is. Cheap when nothing has changed.
  void refresh();
  // Slabs by tier that the plans want to be made free when the tier runs short; 0: no more than
  // usual.
  std::array<std::uint32_t, kTiersMax> rooms_wanted() const;
  // True while a policy in use places by hotness.
  bool ranks() const;
  // Gives the files of such policies the home that they have earned. Returns those that belong
  // higher than before.
  std::vector<RisingFile> rank();

  std::vector<TierView> views() const;

  // What a tier is taken for, and what it has been found to be since. Any thread.
  profiler::TierFigures figures_of(unsigned tier) const;
  void set_figures(unsigned tier, const profiler::TierFigures& figures);

 private:
  struct Slot {
    std::string name;
    const PlacementPolicy* policy = nullptr;
    PlacementPlan plan;
    std::uint64_t sequence = 0;
    bool is_solved = false;
  };
  void solve(unsigned number, const std::vector<TierView>& tiers);
  void announce(unsigned number, std::span<const TierView> tiers) const;
  void announce_thresholds(const std::vector<TierView>& tiers);
  void announce_bandwidths() const;
  Result<const PlacementPolicy*> find(const std::string& name);

  const NodeMemory& memory_;
  mutable std::mutex figures_mutex_;
  std::vector<profiler::TierFigures> figures_;
  const PluginPolicy::Listener complain_;
  std::vector<std::unique_ptr<PluginPolicy>> plugins_;
  const PlacementPolicy* default_policy_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  Hotness hotness_;
  std::array<std::atomic<double>, kTiersMax> hotness_min_{};
};

}  // namespace cairn::node
