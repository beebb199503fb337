// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/advice.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn::advice {
namespace {

// A gain below these is not worth a buffer.
constexpr double kGainMin = 0.05;
constexpr double kRunShareMin = 0.01;
constexpr double kSecondsMin = 0.05;
// A larger or less usual plan has to be so much faster.
constexpr double kNearlyAsFast = 0.02;

Candidate forecast_candidate(const Workload& work, const Machine& machine, const Plan& plan) {
  return {.plan = plan,
          .forecast = forecast_with(work, machine, plan),
          .gain = gain_of(work, machine, plan)};
}

double cost_in_bytes(const Plan& plan) {
  // Memory is dearer than room on a device.
  constexpr double kDeviceShare = 0.05;
  return plan.ram_bytes + kDeviceShare * plan.tier_bytes();
}

// The cheapest of those that are about as fast as the fastest, also where the store is as slow as
// it may be: so there is room for writes that it takes late. Among equals it is the first, with the
// usual expert. With a target, all that reach it are fast enough.
std::size_t choose(const std::vector<Candidate>& candidates, const Forecast& without,
                   double wanted) {
  double best = candidates.front().forecast.seconds();
  double best_high = candidates.front().forecast.interval.high;
  for (const Candidate& candidate : candidates) {
    best = std::min(best, candidate.forecast.seconds());
    best_high = std::min(best_high, candidate.forecast.interval.high);
  }
  const auto is_fast_enough = [&](const Forecast& forecast) {
    return forecast.seconds() <= wanted ||
           (forecast.seconds() <= best + kNearlyAsFast * without.seconds() &&
            forecast.interval.high <= best_high + kNearlyAsFast * without.interval.high);
  };
  std::size_t chosen = candidates.size();
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    if (!is_fast_enough(candidates[index].forecast)) continue;
    if (chosen == candidates.size() ||
        cost_in_bytes(candidates[index].plan) < cost_in_bytes(candidates[chosen].plan)) {
      chosen = index;
    }
  }
  // Where no plan is fast in both cases, the one that is least slow.
  if (chosen < candidates.size()) return chosen;
  const auto fastest = std::ranges::min_element(
      candidates, {}, [](const Candidate& candidate) { return candidate.forecast.seconds(); });
  return static_cast<std::size_t>(fastest - candidates.begin());
}

bool is_fast(const Machine& machine) {
  constexpr double kMuchFaster = 2;
  return machine.store.is_memory ||
         (machine.store.read_bandwidth * kMuchFaster >= machine.memory.read_bandwidth &&
          machine.store.read_latency <= machine.memory.read_latency * kMuchFaster);
}

// Requires: nothing is gained.
Refusal reason_against(const Workload& work, const Machine& machine, const Advice& advice) {
  constexpr double kNearlyAll = 0.9;
  const UseCounts& reads = work.accesses.reads;
  if (is_fast(machine)) return Refusal::kFastStore;
  if (reads.bytes() > work.accesses.writes.request_bytes &&
      work.reuse.reads.compulsory_ratio() > kNearlyAll &&
      reads.repeats < (1 - kNearlyAll) * reads.requests &&
      reads.foreseen_share() < 1 - kNearlyAll) {
    return Refusal::kReadOnce;
  }
  if (advice.without.seconds() < kRunShareMin * (advice.without.seconds() + advice.compute_seconds))
    return Refusal::kLittleIo;
  const double held = static_cast<double>(kBlockBytes) * work.reuse.blocks;
  if (machine.page_cache_bytes >= held && advice.without.miss_ratio < 1 - kGainMin)
    return Refusal::kKernelCache;
  return Refusal::kNoGain;
}

void judge(const Workload& work, const Machine& machine, Advice* advice) {
  const Candidate& advised = advice->advised();
  const double saved = advice->without.seconds() - advised.forecast.seconds();
  const double run = advice->without.seconds() + advice->compute_seconds;
  const bool helps =
      advised.gain.share >= kGainMin && (saved >= kRunShareMin * run || saved >= kSecondsMin);
  if (!helps || machine.store.is_memory) {
    advice->verdict = Verdict::kDoNotUse;
    advice->refusal = reason_against(work, machine, *advice);
    return;
  }
  advice->verdict = advised.gain.interval.low > 0 ? Verdict::kHelps : Verdict::kMayHelp;
}

Limit limit_of(const Workload& work, const Forecast& forecast) {
  const Parts& parts = forecast.parts;
  const double most = std::max(
      {parts.store_reads, parts.tier_reads, parts.copies, parts.store_writes, parts.fsyncs});
  if (parts.fsyncs == most && most > 0) return Limit::kFsyncs;
  if (parts.copies == most) return Limit::kProcessor;
  if (parts.store_writes == most) return Limit::kStoreWrites;
  if (parts.tier_reads == most) return Limit::kTier;
  constexpr double kMostly = 0.8;
  return work.reuse.reads.compulsory_ratio() >= kMostly * forecast.miss_ratio ? Limit::kFirstUses
                                                                              : Limit::kStoreReads;
}

// The same data by requests of 1 MiB, each beside the one before.
Workload with_larger_requests(Workload work) {
  constexpr double kLarge = 1 << 20;
  for (UseCounts* counts : {&work.accesses.reads, &work.accesses.writes}) {
    counts->sequential_bytes += counts->random_bytes;
    counts->sequential_uses += counts->random_uses;
    counts->foreseen_bytes = counts->sequential_bytes;
    counts->foreseen_uses = counts->sequential_uses;
    counts->random_bytes = counts->random_uses = counts->random_block_bytes = 0;
    counts->split_requests = counts->further_requests = counts->adjoining_uses = 0;
    counts->requests = std::min(counts->requests, counts->request_bytes / kLarge);
  }
  return work;
}

void add_improvement(double now, double then, Improvement what, double bytes, Advice* advice) {
  if (now - then >= kGainMin * now && now - then > kSecondsMin)
    advice->improvements.push_back({what, now - then, bytes});
}

// What programs could do better, with what is advised.
void add_changes(const Workload& work, const Machine& machine, Advice* advice) {
  const double now = advice->outlook().seconds();
  const auto seconds_of_change = [&](const Workload& changed) {
    return advice->verdict == Verdict::kDoNotUse
               ? forecast_without(changed, machine).seconds()
               : forecast_with(changed, machine, advice->advised().plan).seconds();
  };
  add_improvement(now, seconds_of_change(with_larger_requests(work)), Improvement::kLargerRequests,
                  0, advice);
  Workload calm = work;
  calm.accesses.fsyncs = 0;
  add_improvement(now, seconds_of_change(calm), Improvement::kNoFsyncs, 0, advice);
}

// What Cairn could do better with other tiers. Where it is advised against, what helps against the
// time without it.
void add_tiers(const Workload& work, const Machine& machine, const Wishes& wishes, Advice* advice) {
  const Plan plan = advice->advised().plan;
  const double now = advice->outlook().seconds();
  const auto seconds_with = [&](const Plan& other) {
    return forecast_with(work, machine, other).seconds();
  };
  Plan durable = plan;
  if (durable.tiers.empty()) durable.tiers = {wishes.spare_tier};
  durable.tiers.front().bytes = std::max(durable.tiers.front().bytes, 1.0 * kBlockBytes);
  durable.durability = DurableLevel::kNode;
  if (plan.durability == DurableLevel::kStore && work.accesses.fsyncs.value_or(0) > 0)
    add_improvement(now, seconds_with(durable), Improvement::kDurableTier, 0, advice);
  Plan larger = plan;
  larger.ram_bytes *= 2;
  add_improvement(now, seconds_with(larger), Improvement::kMoreMemory, larger.ram_bytes, advice);
  Plan tiered = plan;
  tiered.tiers.push_back(wishes.spare_tier);
  tiered.tiers.back().bytes = capacity_for(advice->sizes.working_set_bytes);
  add_improvement(now, seconds_with(tiered), Improvement::kAnotherTier, tiered.tiers.back().bytes,
                  advice);
}

void add_improvements(const Workload& work, const Machine& machine, const Wishes& wishes,
                      Advice* advice) {
  add_changes(work, machine, advice);
  if (!machine.store.is_memory) add_tiers(work, machine, wishes, advice);
  std::ranges::sort(advice->improvements, std::greater<>{}, &Improved::seconds);
}

void add_candidates(const Workload& work, const Machine& machine, const std::vector<Plan>& plans,
                    Advice* advice) {
  for (const Plan& plan : plans)
    advice->candidates.push_back(forecast_candidate(work, machine, plan));
}

}  // namespace

const Improved* Advice::way_to_help() const {
  if (verdict != Verdict::kDoNotUse) return nullptr;
  const auto found = std::ranges::find_if(improvements, [](const Improved& improved) {
    return improved.what != Improvement::kLargerRequests && improved.what != Improvement::kNoFsyncs;
  });
  return found == improvements.end() ? nullptr : &*found;
}

Advice advise(const Workload& work, const Machine& machine, const Wishes& wishes) {
  CAIRN_CHECK(!work.accesses.is_empty());
  CAIRN_CHECK(machine.memory_bytes_max > 0);
  CAIRN_CHECK(wishes.spare_tier.speed.is_valid());
  Advice advice;
  advice.without = forecast_without(work, machine);
  advice.compute_seconds = compute_seconds(work, machine);
  advice.sizes = sizes_of(work, machine, wishes);
  const std::vector<Plan> plans = plans_for(work, machine, wishes);
  add_candidates(work, machine, plans, &advice);
  const double without = advice.without.seconds();
  advice.chosen = choose(advice.candidates, advice.without,
                         wishes.target_share ? *wishes.target_share * without : 0);
  add_candidates(work, machine, wishes.plans, &advice);
  if (wishes.what_if) {
    advice.chosen = advice.candidates.size();
    add_candidates(work, machine, {*wishes.what_if}, &advice);
  }
  judge(work, machine, &advice);
  advice.limit = limit_of(work, advice.outlook());
  add_improvements(work, machine, wishes, &advice);
  const double fsyncs = work.accesses.fsyncs.value_or(0) / work.accesses.concurrency;
  advice.store_fsync_seconds = fsyncs * machine.store.own_fsync_seconds();
  const FileTierPlan* const log = advice.advised().plan.log_tier();
  advice.node_fsync_seconds =
      fsyncs * (log != nullptr ? log->speed : wishes.spare_tier.speed).fsync_seconds();
  CAIRN_CHECK(advice.chosen < advice.candidates.size());
  return advice;
}

}  // namespace cairn::advice
