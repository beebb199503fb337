// SPDX-License-Identifier: Apache-2.0
//
// Profiles for tests that are about something else than measuring.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>

#include "service/profiler/profile_store.h"

namespace cairn::profiler {

inline Spread sample_spread(double value) { return {value, value * 0.9, value, value * 1.1}; }

inline DeviceFigures sample_figures(double bandwidth) {
  DeviceFigures figures;
  figures.read_bandwidth = sample_spread(bandwidth);
  figures.write_bandwidth = sample_spread(bandwidth / 2);
  figures.read_latency = sample_spread(1e-4);
  figures.write_latency = sample_spread(2e-4);
  figures.seconds = 6.5;
  figures.cells.push_back({.direction = Direction::kWrite,
                           .request_bytes = 4096,
                           .depth = 8,
                           .requests = 1000,
                           .bandwidth = sample_spread(bandwidth / 3),
                           .latency = sample_spread(3e-4)});
  return figures;
}

// The profile of a disk that its UUID tells from others.
inline DeviceProfile sample_profile(const std::string& uuid, double bandwidth = 5e8,
                                    int64_t measured_at = 1795219200) {
  DeviceProfile profile;
  profile.identity = {.host = "node17",
                      .device_class = DeviceClass::kSsd,
                      .name = "sda1",
                      .number = "8:1",
                      .st_dev = 2049,
                      .model = "Disk 9",
                      .serial = "",
                      .file_system = "ext4",
                      .file_system_uuid = uuid,
                      .size_bytes = uint64_t{100} << 30};
  profile.directory = "/local/scratch";
  profile.measured_at = measured_at;
  profile.figures = sample_figures(bandwidth);
  return profile;
}

}  // namespace cairn::profiler
