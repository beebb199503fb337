// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "policy/advice/dirty_room.h"

namespace cairn::advice {
namespace {

// vm.dirty_ratio: 20 % of the kernel's memory. Programs wait from the middle between that and
// vm.dirty_background_ratio on, which is half of it (balance_dirty_pages()).
constexpr double kKernelDirtyShare = 0.2;
constexpr double kFreeRunShare = 0.75;
// A hit of Cairn.
constexpr double kHitSeconds = 150e-9;
// What sampling may add to a miss ratio (docs/models.md, "Miss ratios").
constexpr double kSampledError = 0.01;
// No store is busy with reads all the time.
constexpr double kReadShareMax = 0.9;

// As the device sees it: what goes on where the last request ended, and requests elsewhere, the
// latter with all of their bytes.
struct Missed {
  double foreseen_bytes = 0;
  double random_requests = 0;
  double random_bytes = 0;
};

// A program asks for its bytes, Cairn for whole blocks: for runs of them from a file tier, and for
// one at a time from the store. The kernel reads ahead of the latter, but sees at the second block
// that a request goes on, and that is another request to the store.
enum class Reader : std::uint8_t { kProgram, kCairnFromTier, kCairnFromStore };

double joined_requests(double bytes) { return bytes / static_cast<double>(kJoinedBytes); }

// Memory that takes blocks for the first time has to be made: at most `bytes_max`, then it is used
// again.
double fresh_seconds(const Workload& work, double bandwidth, double bytes_max) {
  if (bandwidth <= 0) return 0;
  const AccessSummary& accesses = work.accesses;
  const double distinct = std::min(work.reuse.blocks * static_cast<double>(kBlockBytes),
                                   accesses.reads.bytes() + accesses.writes.request_bytes);
  return std::min(distinct, bytes_max) / bandwidth;
}

double at_a_time(const AccessSummary& accesses, const Machine& machine) {
  return std::max(1.0, std::min(accesses.concurrency, machine.processors));
}

double copy_seconds(const AccessSummary& accesses, const Machine& machine, double call_seconds) {
  const double calls = accesses.reads.requests + accesses.writes.requests;
  const double bytes = std::max(accesses.reads.bytes(), accesses.reads.request_bytes);
  const double copied =
      seconds_of(machine.memory, {.direction = Direction::kRead, .bytes = bytes}) +
      seconds_of(machine.memory,
                 {.direction = Direction::kWrite, .bytes = accesses.writes.request_bytes});
  return (calls * call_seconds + copied) / at_a_time(accesses, machine);
}

Missed missed_of(const UseCounts& reads, double ratio, Reader reader) {
  CAIRN_DCHECK(reads.foreseen_bytes <= reads.sequential_bytes);
  const double following_bytes = reads.sequential_bytes - reads.foreseen_bytes;
  double requests = reads.random_uses - reads.adjoining_uses + reads.further_requests;
  if (reader == Reader::kCairnFromStore) requests += reads.split_requests;
  const double bytes = reader == Reader::kProgram ? reads.random_bytes : reads.random_block_bytes;
  return {.foreseen_bytes = reads.foreseen_bytes * ratio,
          .random_requests = requests * ratio,
          .random_bytes = (bytes + following_bytes) * ratio};
}

double foreseen_seconds(const DeviceSpeed& speed, const Missed& missed, double concurrency) {
  return seconds_of(speed, {.direction = Direction::kRead,
                            .requests = joined_requests(missed.foreseen_bytes),
                            .bytes = missed.foreseen_bytes,
                            .concurrency = concurrency});
}

DeviceLoad random_load(const Missed& missed, double concurrency) {
  return {.direction = Direction::kRead,
          .requests = missed.random_requests,
          .bytes = missed.random_bytes,
          .concurrency = concurrency};
}

double random_seconds(const DeviceSpeed& speed, const Missed& missed, double concurrency) {
  return seconds_of(speed, random_load(missed, concurrency));
}

// Both kinds at once, for a device whose limits hold for their sum.
DeviceLoad load_of(const Missed& missed, double concurrency) {
  DeviceLoad load = random_load(missed, concurrency);
  load.requests += joined_requests(missed.foreseen_bytes);
  load.bytes += missed.foreseen_bytes;
  return load;
}

// The time that the programs compute, and for which a limited device makes good.
struct Pauses {
  double all = 0;
  double short_ones = 0;
  double read_share = 0;  // of them, while there are reads
  double copying = 0;     // is a pause for a device as well
};

// Pauses between hits are of no use to a device, but it begins rested.
double read_pause(const Pauses& pauses, double ratio) {
  return (pauses.short_ones * pauses.read_share + pauses.copying) * ratio + kPauseSeconds;
}

Pauses pauses_of(const Workload& work, const Machine& machine) {
  const double all = compute_seconds(work, machine);
  return {all, std::max(0.0, all - work.accesses.long_pause_seconds), work.accesses.read_share, 0};
}

double kernel_dirty_room(const Machine& machine) {
  const double limit =
      machine.dirty_bytes_max.value_or(kKernelDirtyShare * machine.page_cache_bytes);
  return kFreeRunShare * std::min(limit, machine.page_cache_bytes);
}

// Each write is durable before it returns: what an fsync takes, and the bytes. The first one of a
// file makes its name durable as well.
double through_seconds(const AccessSummary& accesses, const DeviceSpeed& store) {
  const double syncs = accesses.writes.requests + accesses.new_files;
  return syncs * store.fsync_seconds() / accesses.concurrency +
         accesses.writes.request_bytes / store.write_bandwidth;
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

double fsync_seconds(const AccessSummary& accesses, const DeviceSpeed& device) {
  // Those at the same time are one transaction of the file system.
  return accesses.fsyncs.value_or(0) * device.own_fsync_seconds() / accesses.concurrency;
}

// What a limited device makes good between its requests.
void rest_from(const Pauses& pauses, const DeviceSpeed& store, double* seconds) {
  if (store.is_limited(Direction::kWrite))
    *seconds = std::max(0.0, *seconds - pauses.short_ones - kPauseSeconds);
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
  machine.fresh_tier_bandwidth /= corner.tiers;
  machine.fresh_cache_bandwidth /= corner.tiers;
  machine.call_seconds *= corner.tiers;
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
    const Missed served = missed_of(reads, hits, Reader::kCairnFromTier);
    const DeviceSpeed speed = tier.speed.slowed(corner.tiers);
    seconds += foreseen_seconds(speed, served, work.accesses.concurrency) +
               random_seconds(speed, served, work.accesses.concurrency);
  }
  return seconds;
}

// Cairn fetches what it foresees while the programs compute between such reads.
double store_read_seconds(const Workload& work, const Machine& machine, const Plan& plan,
                          double ratio, const Pauses& pauses) {
  const UseCounts& reads = work.accesses.reads;
  const Missed missed = missed_of(reads, ratio, Reader::kCairnFromStore);
  const double concurrency = work.accesses.concurrency;
  const double ahead = plan.prefetch_percent > 0 ? reads.foreseen_share() : 0;
  if (machine.store.is_limited(Direction::kRead)) {
    return waited_seconds(
        machine.store, load_of(missed, concurrency),
        std::max(read_pause(pauses, ratio), ahead * pauses.all * pauses.read_share * ratio));
  }
  const double foreseen = foreseen_seconds(machine.store, missed, concurrency);
  return std::max(0.0, foreseen - pauses.all * ahead) +
         random_seconds(machine.store, missed, concurrency);
}

Forecast without_at(const Workload& work, const Machine& machine, const Corner& corner) {
  const Machine real = at_corner(machine, corner);
  const AccessSummary& accesses = work.accesses;
  Forecast result;
  if (accesses.reads.uses() > 0)
    result.miss_ratio =
        std::min(1.0, work.reuse.miss_ratio("lru", machine.page_cache_bytes) + corner.misses);
  const Missed missed = missed_of(accesses.reads, result.miss_ratio, Reader::kProgram);
  Pauses pauses = pauses_of(work, machine);
  result.parts.copies =
      copy_seconds(accesses, real, real.call_seconds) +
      fresh_seconds(work, real.fresh_cache_bandwidth, std::max(0.0, real.page_cache_bytes)) /
          at_a_time(accesses, real);
  pauses.copying = result.parts.copies;
  result.parts.store_reads = real.store.is_limited(Direction::kRead)
                                 ? waited_seconds(real.store, load_of(missed, accesses.concurrency),
                                                  read_pause(pauses, result.miss_ratio))
                                 : foreseen_seconds(real.store, missed, accesses.concurrency) +
                                       random_seconds(real.store, missed, accesses.concurrency);
  const double duration = std::max(accesses.seconds, pauses.all + result.parts.store_reads);
  if (accesses.writes.requests > 0 && machine.page_cache_bytes > 0) {
    const double rate = drain_rate(work, real.store, accesses.concurrency,
                                   share_of_time(result.parts.store_reads, duration));
    const DrainedWrites drained =
        drain_writes(accesses.written, accesses.seconds, rate, kernel_dirty_room(machine));
    result.parts.store_writes = drained.stall_seconds;
    result.drain_seconds = drained.drain_seconds;
  } else if (accesses.writes.requests > 0) {
    result.parts.store_writes = seconds_of(real.store, {.direction = Direction::kWrite,
                                                        .requests = accesses.writes.requests,
                                                        .bytes = accesses.writes.request_bytes,
                                                        .concurrency = accesses.concurrency});
  }
  result.parts.fsyncs = fsync_seconds(accesses, real.store);
  if (accesses.reads.requests == 0) rest_from(pauses, real.store, &result.parts.fsyncs);
  return result;
}

DeviceSpeed fsync_device(const Machine& machine, const Plan& plan, const Corner& corner) {
  const FileTierPlan* const log = plan.log_tier();
  if (plan.durability == DurableLevel::kNode && log != nullptr)
    return log->speed.slowed(corner.tiers);
  return machine.store;
}

void add_writes(const Workload& work, const Machine& real, const Plan& plan, const Pauses& pauses,
                Forecast* result) {
  const AccessSummary& accesses = work.accesses;
  if (accesses.writes.requests == 0 || plan.mode == "scratch") return;
  if (plan.mode == "persistent-sync") {
    result->parts.store_writes = through_seconds(accesses, real.store);
    rest_from(pauses, real.store, &result->parts.store_writes);
    return;
  }
  const double duration = std::max(accesses.seconds, pauses.all + result->parts.store_reads);
  const double rate = drain_rate(work, real.store, plan.flush_streams,
                                 share_of_time(result->parts.store_reads, duration));
  const DrainedWrites drained =
      drain_writes(accesses.written, accesses.seconds, rate,
                   kDirtyShare * (plan.ram_bytes + plan.tier_bytes()) +
                       (real.page_cache_bytes > 0 ? kernel_dirty_room(real) : 0));
  result->parts.store_writes = drained.stall_seconds;
  result->drain_seconds = drained.drain_seconds;
}

Forecast with_at(const Workload& work, const Machine& machine, const Plan& plan,
                 const Corner& corner) {
  const AccessSummary& accesses = work.accesses;
  if (plan.mode == "bypass") return without_at(work, machine, corner);
  const Machine real = at_corner(machine, corner);
  Forecast result;
  Pauses pauses = pauses_of(work, machine);
  result.miss_ratio = ratio_at(work, plan, plan.ram_bytes + plan.tier_bytes(), corner);
  // What Cairn reads of the store the kernel keeps as well.
  const double from_store =
      std::min(result.miss_ratio, ratio_at(work, plan, machine.page_cache_bytes, corner));
  result.parts.tier_reads = tier_seconds(work, plan, corner);
  result.parts.copies =
      copy_seconds(accesses, real, kHitSeconds) +
      fresh_seconds(work, real.fresh_tier_bandwidth, plan.ram_bytes) / at_a_time(accesses, real);
  pauses.copying = result.parts.copies;
  result.parts.store_reads = store_read_seconds(work, real, plan, from_store, pauses);
  add_writes(work, real, plan, pauses, &result);
  if (plan.mode != "scratch" && plan.mode != "persistent-sync") {
    const DeviceSpeed device = fsync_device(real, plan, corner);
    result.parts.fsyncs = fsync_seconds(accesses, device);
    if (accesses.reads.requests == 0) rest_from(pauses, device, &result.parts.fsyncs);
  }
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
  if (accesses.run_io_seconds)
    return std::max(0.0, accesses.seconds - *accesses.run_io_seconds / accesses.concurrency);
  // What the store served when it was recorded is part of the time between the accesses.
  const double uses = accesses.reads.uses();
  const double missed = uses > 0 ? 1 - std::min(1.0, accesses.recorded_hits / uses) : 0;
  const Missed load = missed_of(accesses.reads, missed, Reader::kProgram);
  const double waited = foreseen_seconds(machine.store, load, accesses.concurrency) +
                        random_seconds(machine.store, load, accesses.concurrency) +
                        copy_seconds(accesses, machine, machine.call_seconds);
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
