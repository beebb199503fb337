// SPDX-License-Identifier: Apache-2.0
//
// Figures for a device that nobody has measured, by its class.
//
// They need only be good enough to order tiers and to weigh them against each other until the
// profiler has measured: typical data-sheet rates of a cheap device of the class, a little below
// them rather than above, because a tier that is taken for too fast is filled first.
//
// Thread safety: pure functions. Units: bytes per second, seconds.
#pragma once

#include "service/profiler/machine_scan.h"

namespace cairn::profiler {

struct ClassFigures {
  double read_bandwidth = 0;
  double write_bandwidth = 0;
  double read_latency = 0;
  double write_latency = 0;
};

ClassFigures class_defaults(DeviceClass device_class);

}  // namespace cairn::profiler
