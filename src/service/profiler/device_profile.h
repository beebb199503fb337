// SPDX-License-Identifier: Apache-2.0
//
// The measured figures of one device, with the device and the day.
//
// Thread safety: values and a pure function.
#pragma once

#include <cstdint>
#include <string>

#include "service/profiler/device_figures.h"
#include "service/profiler/device_identity.h"

namespace cairn::profiler {

struct DeviceProfile {
  DeviceIdentity identity;
  std::string directory;    // the measurement went through it; empty for memory
  int64_t measured_at = 0;  // seconds since 1970, UTC
  DeviceFigures figures;
};

// "2026-11-21"
std::string date_text(int64_t seconds);

}  // namespace cairn::profiler
