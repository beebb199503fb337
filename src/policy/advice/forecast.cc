// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "policy/advice/dirty_room.h"

namespace cairn::advice {
namespace {

// The kernel's read-ahead and Cairn's flusher make requests of about this size of what adjoins.
constexpr double kJoinedBytes = 1 << 20;
// The kernel lets programs wait from vm.dirty_ratio on, 20 % of its memory.
constexpr double kKernelDirtyShare = 0.2;
// A system call, and a hit of Cairn.
constexpr double kCallSeconds = 500e-9;
constexpr double kHitSeconds = 150e-9;
// What sampling may add to a miss ratio (docs/models.md, "Miss ratios").
constexpr double kSampledError = 0.01;
// No store is busy with reads all the time.
constexpr double kReadShareMax = 0.9;

struct Missed {
  double sequential_bytes = 0;
  double random_uses = 0;
  double random_bytes = 0;
};

double joined_requests(double bytes) { return bytes / kJoinedBytes; }

double copy_seconds(const AccessSummary& accesses, const Machine& machine, double call_seconds) {
  const double at_a_time = std::min(accesses.concurrency, machine.processors);
  const double calls = accesses.reads.requests + accesses.writes.requests;
  const double bytes = std::max(accesses.reads.bytes(), accesses.reads.request_bytes);
  const double copied =
      seconds_of(machine.memory, {.direction = Direction::kRead, .bytes = bytes}) +
      seconds_of(machine.memory,
                 {.direction = Direction::kWrite, .bytes = accesses.writes.request_bytes});
  return (calls * call_seconds + copied) / std::max(1.0, at_a_time);
}

Missed missed_of(const UseCounts& reads, double ratio, double random_bytes) {
  return {.sequential_bytes = reads.sequential_bytes * ratio,
          .random_uses = reads.random_uses * ratio,
          .random_bytes = random_bytes * ratio};
}

double sequential_seconds(const DeviceSpeed& speed, double bytes, double concurrency) {
  return seconds_of(speed, {.direction = Direction::kRead,
                            .requests = joined_requests(bytes),
                            .bytes = bytes,
                            .concurrency = concurrency});
}

double random_seconds(const DeviceSpeed& speed, const Missed& missed, double concurrency) {
  return seconds_of(speed, {.direction = Direction::kRead,
                            .requests = missed.random_uses,
                            .bytes = missed.random_bytes,
                            .concurrency = concurrency});
}

// How fast the store takes what was gathered, in bytes per second, beside its reads.
double drain_rate(const Workload& work, const DeviceSpeed& store, double streams,
                  double read_share) {
  const UseCounts& writes = work.accesses.writes;
  const double bytes = std::max(writes.request_bytes, 1.0);
  const double seconds =
      seconds_of(store, {.direction = Direction::kWrite,
                         .requests = joined_requests(writes.sequential_bytes) + writes.random_uses,
                         .bytes = bytes,
                         .concurrency = std::max(1.0, streams)});
  CAIRN_CHECK(seconds > 0);
  return bytes / seconds * (1 - std::min(read_share, kReadShareMax));
}

double share_of_time(double part, double seconds) { return seconds > 0 ? part / seconds : 0; }

double fsync_seconds(const AccessSummary& accesses, double latency) {
  return accesses.fsyncs.value_or(0) * latency / accesses.concurrency;
}

// Both devices so many times slower, and a miss ratio that is so much larger.
struct Corner {
  double store = 1;
  double tiers = 1;
  double misses = 0;
};

Machine at_corner(Machine machine, const Corner& corner) {
  machine.store = machine.store.slowed(corner.store);
  machine.memory = machine.memory.slowed(corner.tiers);
  return machine;
}

double ratio_at(const Workload& work, const Plan& plan, double bytes, const Corner& corner) {
  if (work.accesses.reads.uses() == 0) return 0;
  return std::clamp(work.reuse.miss_ratio(plan.expert, bytes * kUsableShare) + corner.misses, 0.0,
                    1.0);
}

// The hits of the file tiers, each of a whole block.
double tier_seconds(const Workload& work, const Plan& plan, const Corner& corner) {
  double seconds = 0;
  double above = plan.ram_bytes;
  const UseCounts& reads = work.accesses.reads;
  for (const FileTierPlan& tier : plan.tiers) {
    const double hits = std::max(0.0, ratio_at(work, plan, above, corner) -
                                          ratio_at(work, plan, above + tier.bytes, corner));
    above += tier.bytes;
    const Missed served = missed_of(reads, hits, reads.random_block_bytes);
    const DeviceSpeed speed = tier.speed.slowed(corner.tiers);
    seconds += sequential_seconds(speed, served.sequential_bytes, work.accesses.concurrency) +
               random_seconds(speed, served, work.accesses.concurrency);
  }
  return seconds;
}

// Cairn fetches what is read in order while the programs compute between such reads.
double store_read_seconds(const Workload& work, const Machine& machine, const Plan& plan,
                          double ratio, double compute) {
  const UseCounts& reads = work.accesses.reads;
  const Missed missed = missed_of(reads, ratio, reads.random_block_bytes);
  const double in_order =
      sequential_seconds(machine.store, missed.sequential_bytes, work.accesses.concurrency);
  const double hidden = plan.prefetch_percent > 0 ? compute * reads.sequential_share() : 0;
  return std::max(0.0, in_order - hidden) +
         random_seconds(machine.store, missed, work.accesses.concurrency);
}

Forecast without_at(const Workload& work, const Machine& machine, const Corner& corner) {
  const Machine real = at_corner(machine, corner);
  const AccessSummary& accesses = work.accesses;
  Forecast result;
  if (accesses.reads.uses() > 0)
    result.miss_ratio =
        std::min(1.0, work.reuse.miss_ratio("lru", machine.page_cache_bytes) + corner.misses);
  const Missed missed = missed_of(accesses.reads, result.miss_ratio, accesses.reads.random_bytes);
  result.parts.store_reads =
      sequential_seconds(real.store, missed.sequential_bytes, accesses.concurrency) +
      random_seconds(real.store, missed, accesses.concurrency);
  result.parts.copies = copy_seconds(accesses, real, kCallSeconds);
  const double duration = std::max(accesses.seconds, result.parts.store_reads);
  if (accesses.writes.requests > 0 && machine.page_cache_bytes > 0) {
    const double rate = drain_rate(work, real.store, accesses.concurrency,
                                   share_of_time(result.parts.store_reads, duration));
    const DrainedWrites drained = drain_writes(accesses.written, accesses.seconds, rate,
                                               kKernelDirtyShare * machine.page_cache_bytes);
    result.parts.store_writes = drained.stall_seconds;
    result.drain_seconds = drained.drain_seconds;
  } else if (accesses.writes.requests > 0) {
    result.parts.store_writes = seconds_of(real.store, {.direction = Direction::kWrite,
                                                        .requests = accesses.writes.requests,
                                                        .bytes = accesses.writes.request_bytes,
                                                        .concurrency = accesses.concurrency});
  }
  result.parts.fsyncs = fsync_seconds(accesses, real.store.write_latency);
  return result;
}

double fsync_latency(const Machine& machine, const Plan& plan, const Corner& corner) {
  const FileTierPlan* const log = plan.log_tier();
  if (plan.durability == DurableLevel::kNode && log != nullptr)
    return log->speed.slowed(corner.tiers).write_latency;
  return machine.store.write_latency;
}

Forecast with_at(const Workload& work, const Machine& machine, const Plan& plan,
                 const Corner& corner) {
  const AccessSummary& accesses = work.accesses;
  if (plan.mode == "bypass") return without_at(work, machine, corner);
  const Machine real = at_corner(machine, corner);
  Forecast result;
  result.miss_ratio = ratio_at(work, plan, plan.ram_bytes + plan.tier_bytes(), corner);
  result.parts.store_reads =
      store_read_seconds(work, real, plan, result.miss_ratio, compute_seconds(work, machine));
  result.parts.tier_reads = tier_seconds(work, plan, corner);
  result.parts.copies = copy_seconds(accesses, real, kHitSeconds);
  if (accesses.writes.requests > 0) {
    const double duration = std::max(accesses.seconds, result.parts.store_reads);
    const double rate = drain_rate(work, real.store, plan.flush_streams,
                                   share_of_time(result.parts.store_reads, duration));
    const DrainedWrites drained = drain_writes(accesses.written, accesses.seconds, rate,
                                               kDirtyShare * (plan.ram_bytes + plan.tier_bytes()));
    result.parts.store_writes = drained.stall_seconds;
    result.drain_seconds = drained.drain_seconds;
  }
  result.parts.fsyncs = fsync_seconds(accesses, fsync_latency(real, plan, corner));
  return result;
}

double tier_error(const Machine& machine, const Plan& plan) {
  double error = machine.memory.error;
  for (const FileTierPlan& tier : plan.tiers) error = std::max(error, tier.speed.error);
  return error;
}

// The corners of the errors: the store slow or fast, the tiers slow or fast.
std::array<Corner, 4> corners_of(const Workload& work, const Machine& machine, const Plan& plan) {
  const double store = machine.store.error;
  const double tiers = tier_error(machine, plan);
  const double misses = work.reuse.is_sampled ? kSampledError : 0;
  return {Corner{1 / store, 1 / tiers, -misses}, Corner{1 / store, tiers, misses},
          Corner{store, 1 / tiers, -misses}, Corner{store, tiers, misses}};
}

}  // namespace

double Reuse::miss_ratio(const std::string& expert, double capacity_bytes) const {
  const auto blocks_held =
      static_cast<std::uint64_t>(std::max(0.0, capacity_bytes) / static_cast<double>(kBlockBytes));
  const double lru = reads.at(blocks_held);
  if (blocks_held == 0) return 1;
  for (const ExpertMisses& other : experts) {
    const double all_of_lru = all.at(blocks_held);
    if (other.name != expert || all_of_lru <= 0) continue;
    const double scaled = lru * other.curve.at(blocks_held) / all_of_lru;
    return std::clamp(scaled, std::min(lru, reads.compulsory_ratio()), 1.0);
  }
  return lru;
}

double Plan::tier_bytes() const {
  double sum = 0;
  for (const FileTierPlan& tier : tiers) sum += tier.bytes;
  return sum;
}

const FileTierPlan* Plan::log_tier() const {
  if (tiers.empty()) return nullptr;
  const auto durable = std::ranges::find(tiers, true, &FileTierPlan::is_durable);
  return durable != tiers.end() ? &*durable : &tiers.front();
}

double compute_seconds(const Workload& work, const Machine& machine) {
  const AccessSummary& accesses = work.accesses;
  if (accesses.run_seconds && accesses.run_io_seconds)
    return std::max(0.0, *accesses.run_seconds - *accesses.run_io_seconds / accesses.concurrency);
  // What the store served when it was recorded is part of the time between the accesses.
  const double uses = accesses.reads.uses();
  const double missed = uses > 0 ? 1 - std::min(1.0, accesses.recorded_hits / uses) : 0;
  const Missed bytes = missed_of(accesses.reads, missed, accesses.reads.random_bytes);
  const double waited =
      sequential_seconds(machine.store, bytes.sequential_bytes, accesses.concurrency) +
      random_seconds(machine.store, bytes, accesses.concurrency) +
      copy_seconds(accesses, machine, kCallSeconds);
  return std::max(0.0, accesses.seconds - waited);
}

Forecast forecast_without(const Workload& work, const Machine& machine) {
  Forecast result = without_at(work, machine, {});
  const double misses = work.reuse.is_sampled ? kSampledError : 0;
  const double error = machine.store.error;
  const double memory = machine.memory.error;
  result.interval = {without_at(work, machine, {1 / error, 1 / memory, -misses}).seconds(),
                     without_at(work, machine, {error, memory, misses}).seconds()};
  CAIRN_DCHECK(result.interval.low <= result.interval.high);
  return result;
}

Forecast forecast_with(const Workload& work, const Machine& machine, const Plan& plan) {
  Forecast result = with_at(work, machine, plan, {});
  result.interval = {result.seconds(), result.seconds()};
  for (const Corner& corner : corners_of(work, machine, plan)) {
    const double seconds = with_at(work, machine, plan, corner).seconds();
    result.interval.low = std::min(result.interval.low, seconds);
    result.interval.high = std::max(result.interval.high, seconds);
  }
  return result;
}

Gain gain_of(const Workload& work, const Machine& machine, const Plan& plan) {
  const auto share_at = [&](const Corner& corner) {
    const double without = without_at(work, machine, corner).seconds();
    CAIRN_CHECK(without >= 0);
    return without > 0 ? 1 - with_at(work, machine, plan, corner).seconds() / without : 0;
  };
  Gain gain{.share = share_at({}), .interval = {}};
  gain.interval = {gain.share, gain.share};
  for (const Corner& corner : corners_of(work, machine, plan)) {
    gain.interval.low = std::min(gain.interval.low, share_at(corner));
    gain.interval.high = std::max(gain.interval.high, share_at(corner));
  }
  return gain;
}

}  // namespace cairn::advice
