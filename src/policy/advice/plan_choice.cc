// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/plan_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace cairn::advice {
namespace {

constexpr double kMib = 1 << 20;

double whole_mib(double bytes) { return std::ceil(bytes / kMib) * kMib; }

// The smallest memory that is proposed: less than usual where there is less.
double least_memory(const Machine& machine) {
  return std::min(kRamBytesMin, machine.memory_bytes_max);
}

double bytes_of(double blocks) { return blocks * static_cast<double>(kBlockBytes); }

// The smallest memory that reaches the target, alone.
std::optional<double> target_size(const Workload& work, const Machine& machine, double share) {
  const double wanted = share * forecast_without(work, machine).seconds();
  const double last = 4 * capacity_for(bytes_of(work.reuse.blocks)) + kRamBytesMin;
  constexpr double kStep = 1.05;
  for (double bytes = least_memory(machine); bytes < last * kStep; bytes *= kStep) {
    Plan plan;
    plan.ram_bytes = whole_mib(bytes);
    choose_settings(work, machine, &plan);
    if (forecast_with(work, machine, plan).seconds() <= wanted) return plan.ram_bytes;
  }
  return std::nullopt;
}

// `plan.ram_bytes` is what it should have.
void add_plan(const Workload& work, const Machine& machine, Plan plan, std::vector<Plan>* plans) {
  const double bytes = plan.ram_bytes;
  const double most = std::max(std::floor(machine.memory_bytes_max / kMib) * kMib, kMib);
  plan.ram_bytes = std::min(std::max(whole_mib(bytes), least_memory(machine)), most);
  choose_settings(work, machine, &plan);
  const bool is_known = std::ranges::any_of(*plans, [&](const Plan& other) {
    return other.ram_bytes == plan.ram_bytes && other.tiers.size() == plan.tiers.size();
  });
  if (!is_known) plans->push_back(std::move(plan));
}

}  // namespace

double capacity_for(double bytes) {
  CAIRN_CHECK(bytes >= 0);
  // A block more than the share, as a curve counts whole blocks.
  return whole_mib((bytes + static_cast<double>(kBlockBytes)) / kUsableShare);
}

Sizes sizes_of(const Workload& work, const Machine& machine, const Wishes& wishes) {
  Sizes sizes;
  if (const auto knee = work.reuse.all.knee())
    sizes.knee_bytes = bytes_of(static_cast<double>(knee->capacity));
  sizes.hot_bytes = bytes_of(work.reuse.hot_blocks);
  sizes.working_set_bytes = bytes_of(work.reuse.blocks);
  if (wishes.target_share) sizes.target_bytes = target_size(work, machine, *wishes.target_share);
  return sizes;
}

void choose_settings(const Workload& work, const Machine& machine, Plan* plan) {
  const AccessSummary& accesses = work.accesses;
  const UseCounts& reads = accesses.reads;
  const Reuse& reuse = work.reuse;
  constexpr double kFew = 0.25;
  constexpr double kOften = 4;
  constexpr double kManyStreams = 8;
  const double uses = reads.uses() + accesses.writes.uses();
  if (reuse.hot_blocks < kFew * reuse.blocks && uses > kOften * reuse.blocks) {
    plan->policy = "hot-data";
  } else if (accesses.concurrency >= kManyStreams && reads.requests > 0 &&
             reads.request_bytes / reads.requests < static_cast<double>(kBlockBytes)) {
    plan->policy = "max-locality";
  }
  // All of it fits twice: the store is kept for the reads.
  const double room = kDirtyShare * (plan->ram_bytes + plan->tier_bytes());
  if (accesses.writes.request_bytes > 0 && reads.bytes() > accesses.writes.request_bytes &&
      2 * accesses.writes.request_bytes < room) {
    plan->trigger = "on-exit";
  }
  if (std::ranges::any_of(plan->tiers, &FileTierPlan::is_durable))
    plan->durability = DurableLevel::kNode;
  constexpr double kNone = 0.01;
  constexpr double kMost = 0.8;
  if (reads.uses() > 0 && reads.foreseen_share() < kNone &&
      reuse.reads.compulsory_ratio() > 1 - kNone) {
    plan->prefetch_percent = 0;
  } else if (reads.foreseen_share() > kMost) {
    plan->prefetch_percent = 50;
  }
  constexpr double kDeepQueue = 8;
  if (machine.store.queue_depth >= kDeepQueue) plan->flush_streams = 4;
}

std::vector<Plan> plans_for(const Workload& work, const Machine& machine, const Wishes& wishes) {
  const Sizes sizes = sizes_of(work, machine, wishes);
  std::vector<Plan> plans;
  Plan plain;
  const auto add = [&](const char* name, double bytes) {
    Plan plan = plain;
    plan.name = name;
    plan.ram_bytes = bytes;
    add_plan(work, machine, std::move(plan), &plans);
  };
  if (sizes.target_bytes) add("target", *sizes.target_bytes);
  add("working set", capacity_for(sizes.working_set_bytes));
  add("hot set", capacity_for(sizes.hot_bytes));
  if (sizes.knee_bytes) add("knee", capacity_for(*sizes.knee_bytes));
  add("room to write", sizes.working_set_bytes / kDirtyShare);
  add("half the working set", capacity_for(sizes.working_set_bytes) / 2);
  add("least", least_memory(machine));
  if (!wishes.tiers.empty()) {
    plain.tiers = wishes.tiers;
    add("working set + tiers", capacity_for(sizes.working_set_bytes));
    add("hot set + tiers", capacity_for(sizes.hot_bytes));
    add("least + tiers", least_memory(machine));
  }
  CAIRN_CHECK(!plans.empty());
  // Another expert is a plan of its own, where its curve is known.
  const std::vector<Plan> sized = plans;
  for (const Plan& plan : sized) {
    for (const ExpertMisses& expert : work.reuse.experts) {
      if (expert.name == plan.expert) continue;
      Plan other = plan;
      other.expert = expert.name;
      other.name = plan.name + ", " + expert.name;
      plans.push_back(std::move(other));
    }
  }
  return plans;
}

}  // namespace cairn::advice
