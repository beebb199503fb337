// SPDX-License-Identifier: Apache-2.0
// Measures in idle time the tiers that nobody has measured: a node without a profile, or whose
// device is another one by now, starts with the figures of the device's class (profiler/), and from
// here on places by what was found.
//
// Idle is a node whose programs have made no file call for a while and that has stored everything.
// The first call ends a measurement under way; it is tried again later. A place that cannot be
// measured (no room, a failing device) keeps the class's figures, which the log says once.
//
// Thread safety: start() and stop() by the composing thread. Ownership: borrows the memory and the
// engine, owns its threads, of which there is none when everything is known.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/capacity/placement_engine.h"

namespace cairn::node {

class IdleProfiler {
 public:
  using Log = std::function<void(const std::string&)>;
  // Measures the tier in `directory`; an empty one stands for the memory, one profile for each NUMA
  // node. Ends with kRetry soon after `cancelled` is set.
  using Measure = std::function<Result<std::vector<profiler::DeviceProfile>>(
      const std::string& directory, const std::atomic<bool>& cancelled)>;

  // How tiers are measured, and where the profiles are kept.
  struct Profiling {
    Measure measure;
    profiler::ProfileStore store;
  };

  IdleProfiler(const NodeMemory& memory, const NodeConfig& config, PlacementEngine& placement,
               Log log, Profiling profiling);
  // Measures with the profiler, and keeps the profiles in the default store.
  IdleProfiler(const NodeMemory& memory, const NodeConfig& config, PlacementEngine& placement,
               Log log);
  ~IdleProfiler() { stop(); }
  IdleProfiler(const IdleProfiler&) = delete;
  IdleProfiler& operator=(const IdleProfiler&) = delete;

  void start();
  void stop();

 private:
  enum class Outcome : std::uint8_t { kDone, kInterrupted };
  void run();
  // Returns false when the node ends.
  bool wait_until_idle();
  bool pause(std::uint32_t milliseconds);
  std::uint64_t calls_so_far() const;
  Outcome measure(unsigned tier);
  void take(unsigned tier, const std::vector<profiler::DeviceProfile>& profiles);

  const NodeMemory& memory_;
  const NodeConfig& config_;
  PlacementEngine& placement_;
  const Log log_;
  const Profiling profiling_;
  std::vector<unsigned> unmeasured_;
  std::uint64_t calls_seen_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
};

}  // namespace cairn::node
