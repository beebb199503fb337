// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/idle_profiler.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>

#include "base/check.h"

namespace cairn::node {
namespace {

// How often a measurement looks whether programs have begun to work.
constexpr std::uint32_t kLookMs = 10;

Result<std::vector<profiler::DeviceProfile>> measure_place(const std::string& directory,
                                                           const std::atomic<bool>& cancelled) {
  profiler::MeasureOptions options;
  options.cancelled = &cancelled;
  if (directory.empty()) return profiler::profile_memory(options);
  auto profile = profiler::profile_directory(directory, options);
  if (!profile) return profile.status();
  return std::vector<profiler::DeviceProfile>{std::move(profile.value())};
}

}  // namespace

IdleProfiler::IdleProfiler(const NodeMemory& memory, const NodeConfig& config,
                           PlacementEngine& placement, Log log, Profiling profiling)
    : memory_(memory),
      config_(config),
      placement_(placement),
      log_(std::move(log)),
      profiling_(std::move(profiling)) {
  CAIRN_CHECK(profiling_.measure != nullptr && log_ != nullptr);
  for (unsigned tier = 0; tier <= config.tiers.size(); ++tier) {
    if (memory.pool(static_cast<TierId>(tier)).slab_count() != 0 &&
        !placement.figures_of(tier).measured) {
      unmeasured_.push_back(tier);
    }
  }
}

IdleProfiler::IdleProfiler(const NodeMemory& memory, const NodeConfig& config,
                           PlacementEngine& placement, Log log)
    : IdleProfiler(memory, config, placement, std::move(log),
                   Profiling{measure_place, profiler::ProfileStore()}) {}

void IdleProfiler::start() {
  if (config_.profile_idle_ms == 0 || unmeasured_.empty()) return;
  thread_ = std::thread([this] { run(); });
}

void IdleProfiler::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// False when the node ends.
bool IdleProfiler::pause(std::uint32_t milliseconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                            [this] { return stopping_; });
}

std::uint64_t IdleProfiler::calls_so_far() const {
  std::uint64_t calls = 0;
  for (std::uint32_t slot = 0; slot < memory_.slot_count(); ++slot) {
    for (const CounterShard& shard : memory_.slot(static_cast<std::uint16_t>(slot)).shards) {
      calls += shard.get(Counter::kReadHits) + shard.get(Counter::kReads) +
               shard.get(Counter::kWrites) + shard.get(Counter::kOpens);
    }
  }
  return calls;
}

bool IdleProfiler::wait_until_idle() {
  for (;;) {
    calls_seen_ = calls_so_far();
    if (!pause(config_.profile_idle_ms)) return false;
    const bool is_stored = memory_.flusher_board().dirty_bytes.load(std::memory_order_relaxed) == 0;
    if (is_stored && calls_so_far() == calls_seen_) return true;
  }
}

void IdleProfiler::run() {
  pthread_setname_np(pthread_self(), "cairn-profiler");
  while (!unmeasured_.empty() && wait_until_idle()) {
    if (measure(unmeasured_.front()) == Outcome::kDone) unmeasured_.erase(unmeasured_.begin());
  }
}

IdleProfiler::Outcome IdleProfiler::measure(unsigned tier) {
  if (!memory_.takes_blocks(static_cast<TierId>(tier))) return Outcome::kDone;
  const std::string directory = tier == 0 ? std::string() : config_.tiers[tier - 1].directory;
  std::atomic<bool> cancelled{false};
  std::future<Result<std::vector<profiler::DeviceProfile>>> measurement;
  try {
    measurement =
        std::async(std::launch::async, [&] { return profiling_.measure(directory, cancelled); });
  } catch (const std::system_error&) {
    return Outcome::kInterrupted;  // no thread can be had just now
  }
  while (measurement.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
    if (!pause(kLookMs) || calls_so_far() != calls_seen_) {
      cancelled = true;
      break;
    }
  }
  const auto profiles = measurement.get();
  if (profiles) {
    take(tier, profiles.value());
  } else if (profiles.status().code() == StatusCode::kRetry) {
    return Outcome::kInterrupted;
  } else {
    log_("tier " + tier_name(config_, tier) +
         " keeps the figures of its class: " + profiles.status().message());
  }
  return Outcome::kDone;
}

// The slowest of several NUMA nodes stands for the tier, as in figures_for().
void IdleProfiler::take(unsigned tier, const std::vector<profiler::DeviceProfile>& profiles) {
  if (profiles.empty()) return;
  for (const profiler::DeviceProfile& profile : profiles) {
    if (const Status saved = profiling_.store.save(profile); !saved)
      log_("what was measured is known to this node alone: " + saved.message());
  }
  const auto slowest =
      std::min_element(profiles.begin(), profiles.end(), [](const auto& left, const auto& right) {
        return left.figures.write_bandwidth.value < right.figures.write_bandwidth.value;
      });
  placement_.set_figures(tier, profiler::tier_figures(*slowest));
  memory_.organizer_board().bell.ring();
  log_("tier " + tier_name(config_, tier) +
       " was measured in idle time: " + profiler::tier_figures(*slowest).source);
}

}  // namespace cairn::node
