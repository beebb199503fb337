// SPDX-License-Identifier: Apache-2.0
//
// What deciding where blocks go costs, per policy of the table and for the printed form of the
// paper's max-bandwidth, with six tiers in use:
//   placement_cost [--slices 9] [--blocks 200000]
// Prints {"<policy>": {"planned_ns", "unplanned_ns", "plan_ns", "blocks_per_plan"}, ...}, medians
// over slices. A block is placed as a client does that follows a plan: the next element of the
// pattern, or a tier with room below it. Every 64 blocks the plan is checked, and made anew when it
// is stale. All of that is in planned_ns; unplanned_ns asks the policy for each block.
//
// The tiers stay half full: for each block placed one is taken out, from the tiers in turn in
// proportion to their capacities, as an organizer and flushes would, so that room shifts from tier
// to tier and plans do become stale. That costs both sides a few nanoseconds that are not
// decisions.
#include "policy/placement/placement_plan.h"
#include "policy/placement/policies.h"
#include "worker.h"

namespace {

using namespace cairn;

constexpr unsigned kTiers = 6;

// Capacities double from tier to tier, from 256 MiB; speeds as of memory down to a disk.
class Tiers {
 public:
  Tiers() {
    const double bandwidths[kTiers] = {9e9, 5e9, 2.5e9, 1.2e9, 500e6, 150e6};
    const double latencies[kTiers] = {2e-7, 4e-7, 1.5e-5, 4e-5, 1e-4, 8e-3};
    for (unsigned at = 0; at < kTiers; ++at) {
      const uint64_t capacity = uint64_t{256} << (20 + at);
      views_.push_back({static_cast<TierId>(at), capacity, capacity / 2, capacity / 32,
                        bandwidths[at], latencies[at]});
      for (unsigned turn = 0; turn < (1u << at); ++turn) turns_.push_back(at);
    }
  }
  std::span<const TierView> views() const { return views_; }

  // The element's tier or the next below it that has room; kTiers when none has.
  unsigned with_room(unsigned at) const {
    while (at < kTiers && views_[at].usable_bytes() < kBlockBytes) ++at;
    return at;
  }
  void take(unsigned at) { views_[at].free_bytes -= kBlockBytes; }
  void give_back_one() {
    TierView& tier = views_[turns_[next_++ % turns_.size()]];
    if (tier.free_bytes < tier.capacity_bytes) tier.free_bytes += kBlockBytes;
  }

 private:
  std::vector<TierView> views_;
  std::vector<unsigned> turns_;
  size_t next_ = 0;
};

struct Cost {
  std::vector<double> planned_ns;
  std::vector<double> unplanned_ns;
  std::vector<double> plan_ns;
  uint64_t blocks = 0;
  uint64_t plans = 0;
};

// Returns the nanoseconds per block.
double follow_plans(const PlacementPolicy& policy, Tiers& tiers, uint64_t blocks, Cost* cost) {
  PlacementRequest window{kPlanWindowBytes};
  const int64_t begin = worker::now_ns();
  PlacementPlan plan = make_plan(policy, tiers.views(), window);
  uint64_t plans = 1;
  uint64_t placed = 0;
  for (uint64_t block = 0; block < blocks; ++block) {
    if (block % PlacementPattern::kElements == 0 && is_stale(plan, tiers.views())) {
      window.sequence = block;
      plan = make_plan(policy, tiers.views(), window);
      ++plans;
    }
    const unsigned at = tiers.with_room(raw(plan.pattern.at(block)));
    if (at < kTiers) {
      tiers.take(at);
      ++placed;
    }
    tiers.give_back_one();
  }
  const int64_t end = worker::now_ns();
  worker::require(placed > blocks / 2, "hardly any block was placed");
  cost->blocks += blocks;
  cost->plans += plans;
  return static_cast<double>(end - begin) / static_cast<double>(blocks);
}

double ask_for_each(const PlacementPolicy& policy, Tiers& tiers, uint64_t blocks) {
  PlacementRequest request{kBlockBytes};
  uint64_t placed = 0;
  const int64_t begin = worker::now_ns();
  for (uint64_t block = 0; block < blocks; ++block) {
    request.sequence = block;
    const auto chosen = policy.choose(tiers.views(), request);
    if (chosen) {
      tiers.take(raw(*chosen));
      ++placed;
    }
    tiers.give_back_one();
  }
  const int64_t end = worker::now_ns();
  worker::require(placed > blocks / 2, "hardly any block was placed");
  return static_cast<double>(end - begin) / static_cast<double>(blocks);
}

double plan_once(const PlacementPolicy& policy, const Tiers& tiers) {
  constexpr int kRounds = 200;
  PlacementRequest window{kPlanWindowBytes};
  unsigned sum = 0;
  const int64_t begin = worker::now_ns();
  for (int round = 0; round < kRounds; ++round) {
    window.sequence = static_cast<uint64_t>(round);
    sum += raw(make_plan(policy, tiers.views(), window).pattern.at(0));
  }
  const int64_t end = worker::now_ns();
  worker::require(sum < kRounds * kTiers, "a plan names a tier that does not exist");
  return static_cast<double>(end - begin) / kRounds;
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const uint64_t slices = options.number("--slices", 9);
  const uint64_t blocks = options.number("--blocks", 200000);
  const char* separator = "{";
  const MaxBandwidth printed_form("maxbw-paper", paper_cost_of_access);
  const auto chosen = placement_policies();
  std::vector<const PlacementPolicy*> policies(chosen.begin(), chosen.end());
  policies.push_back(&printed_form);
  for (const PlacementPolicy* policy : policies) {
    Cost cost;
    for (uint64_t slice = 0; slice < slices; ++slice) {
      Tiers planned;
      cost.planned_ns.push_back(follow_plans(*policy, planned, blocks, &cost));
      cost.plan_ns.push_back(plan_once(*policy, planned));
      Tiers unplanned;
      cost.unplanned_ns.push_back(ask_for_each(*policy, unplanned, blocks / 10 + 1));
    }
    printf(
        "%s\"%s\": {\"planned_ns\": %.3f, \"unplanned_ns\": %.3f, \"plan_ns\": %.1f, "
        "\"blocks_per_plan\": %.1f}",
        separator, policy->name(), worker::median(cost.planned_ns),
        worker::median(cost.unplanned_ns), worker::median(cost.plan_ns),
        static_cast<double>(cost.blocks) / static_cast<double>(cost.plans));
    separator = ", ";
  }
  printf("}\n");
  return 0;
}
