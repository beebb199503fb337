// SPDX-License-Identifier: Apache-2.0
//
// The figures that placement works with: measured where this very device has been measured, else
// the defaults of its class. And how to measure a place and say which device it was.
//
// Thread safety: any thread. Ownership: results are values. Units: bytes per second, seconds.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "service/profiler/class_defaults.h"
#include "service/profiler/device_measure.h"
#include "service/profiler/profile_store.h"

namespace cairn::profiler {

enum class TierKind : uint8_t {
  kMemory,     // the RAM tier
  kDirectory,  // a file tier, or a directory of the backing store
};

struct TierFigures {
  double read_bandwidth = 0;
  double write_bandwidth = 0;
  double read_latency = 0;
  double write_latency = 0;
  // 0: as the latencies above, and unknown.
  double read_idle_latency = 0;
  double write_idle_latency = 0;
  double sync_latency = 0;
  std::string source;     // "measured 2026-11-21", "class default: ssd"
  bool measured = false;  // false: worth measuring in idle time
  DeviceClass device_class = DeviceClass::kUnknown;
};

TierFigures tier_figures(const DeviceProfile& profile);
TierFigures tier_figures(DeviceClass device_class);

// Never fails: a directory that is gone or tells nothing has the figures of an unknown device. The
// slowest of several NUMA nodes stands for the RAM tier, whose pages may be on any.
TierFigures figures_for(const std::string& directory, TierKind kind,
                        const ProfileStore& store = ProfileStore(), const MachineRoots& roots = {});

// Measure and name the device; storing is the caller's. Errors: as measure_device().
Result<DeviceProfile> profile_directory(const std::string& directory,
                                        const MeasureOptions& options = {});

// One for each NUMA node, a second each.
Result<std::vector<DeviceProfile>> profile_memory(const MeasureOptions& options = {});

}  // namespace cairn::profiler
