// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/tier_figures.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "service/profiler/memory_measure.h"

namespace cairn::profiler {
namespace {

// Memory is measured in less time than disks: there is no throttle and no seek to average over.
constexpr double kMemorySecondsMax = 1;

int64_t now_seconds() { return wall_clock_ns() / kNanosPerSecond; }

TierFigures memory_figures(const ProfileStore& store, const MachineRoots& roots) {
  std::optional<TierFigures> slowest;
  for (const DeviceIdentity& identity : identify_memory(scan_machine(roots))) {
    const auto profile = store.find(identity);
    if (!profile) return tier_figures(DeviceClass::kMemory);
    const TierFigures figures = tier_figures(*profile);
    if (!slowest || figures.write_bandwidth < slowest->write_bandwidth) slowest = figures;
  }
  return slowest.value_or(tier_figures(DeviceClass::kMemory));
}

}  // namespace

TierFigures tier_figures(const DeviceProfile& profile) {
  const DeviceFigures& figures = profile.figures;
  return {.read_bandwidth = figures.read_bandwidth.value,
          .write_bandwidth = figures.write_bandwidth.value,
          .read_latency = figures.read_latency.value,
          .write_latency = figures.write_latency.value,
          .read_idle_latency = figures.read_idle_latency,
          .write_idle_latency = figures.write_idle_latency,
          .sync_latency = figures.sync_latency,
          .source = "measured " + date_text(profile.measured_at),
          .measured = true,
          .device_class = profile.identity.device_class};
}

TierFigures tier_figures(DeviceClass device_class) {
  const ClassFigures figures = class_defaults(device_class);
  return {.read_bandwidth = figures.read_bandwidth,
          .write_bandwidth = figures.write_bandwidth,
          .read_latency = figures.read_latency,
          .write_latency = figures.write_latency,
          .read_idle_latency = 0,
          .write_idle_latency = 0,
          .sync_latency = 0,
          .source = "class default: " + std::string(class_name(device_class)),
          .measured = false,
          .device_class = device_class};
}

TierFigures figures_for(const std::string& directory, TierKind kind, const ProfileStore& store,
                        const MachineRoots& roots) {
  if (kind == TierKind::kMemory) return memory_figures(store, roots);
  const auto identity = identify_directory(directory, roots);
  if (!identity.is_ok()) return tier_figures(DeviceClass::kUnknown);
  // tmpfs is memory whatever directory it is seen through.
  if (identity.value().device_class == DeviceClass::kMemory) return memory_figures(store, roots);
  const auto profile = store.find(identity.value());
  return profile ? tier_figures(*profile) : tier_figures(identity.value().device_class);
}

Result<DeviceProfile> profile_directory(const std::string& directory,
                                        const MeasureOptions& options) {
  auto figures = measure_device(directory, options);
  if (!figures.is_ok()) return figures.status();
  auto identity = identify_directory(directory);
  if (!identity.is_ok()) return identity.status();
  return DeviceProfile{.identity = std::move(identity.value()),
                       .directory = directory,
                       .measured_at = now_seconds(),
                       .figures = std::move(figures.value())};
}

Result<std::vector<DeviceProfile>> profile_memory(const MeasureOptions& options) {
  const Machine machine = scan_machine();
  const std::vector<DeviceIdentity> identities = identify_memory(machine);
  CAIRN_CHECK(identities.size() <= machine.memory_nodes.size());
  std::vector<DeviceProfile> profiles;
  for (size_t index = 0; index < identities.size(); ++index) {
    if (options.progress) {
      options.progress("copying memory",
                       static_cast<double>(index) / static_cast<double>(identities.size()));
    }
    const MemoryMeasureOptions memory = {.seconds = std::min(options.seconds, kMemorySecondsMax),
                                         .bind = identities.size() > 1,
                                         .cancelled = options.cancelled};
    auto figures = measure_memory(machine.memory_nodes[index], memory);
    if (!figures.is_ok()) return figures.status();
    profiles.push_back({.identity = identities[index],
                        .directory = "",
                        .measured_at = now_seconds(),
                        .figures = std::move(figures.value())});
  }
  return profiles;
}

}  // namespace cairn::profiler
