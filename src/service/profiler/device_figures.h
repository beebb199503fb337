// SPDX-License-Identifier: Apache-2.0
//
// The result of a measurement of a place.
//
// Thread safety: plain values. Units: bytes per second, seconds.
#pragma once

#include <cstdint>
#include <vector>

#include "service/profiler/measured_series.h"
#include "service/profiler/request_engine.h"

namespace cairn::profiler {

// One combination of direction, request size and queue depth.
struct CellFigures {
  Direction direction = Direction::kRead;
  uint32_t request_bytes = 0;
  unsigned depth = 1;
  uint64_t requests = 0;  // that the figures rest on
  Spread bandwidth;
  Spread latency;  // from the request to its completion, with `depth` of them in flight
};

struct DeviceFigures {
  Spread read_bandwidth;  // of large requests, as many in flight as the device can use
  Spread write_bandwidth;
  Spread read_latency;  // of one small request alone
  Spread write_latency;
  // A small request that comes after a pause takes this. A device that is limited to so many
  // requests in a second answers it at once; read_latency and write_latency are then the limit's.
  double read_idle_latency = 0;  // 0: not measured
  double write_idle_latency = 0;
  double sync_latency = 0;  // a small record is appended to a file, and made durable; 0 as above
  std::vector<CellFigures> cells;  // everything that was measured
  bool direct = true;              // past the page cache
  double seconds = 0;              // that the measurement took
};

}  // namespace cairn::profiler
