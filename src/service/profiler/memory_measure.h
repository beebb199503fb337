// SPDX-License-Identifier: Apache-2.0
//
// Measures the memory of a NUMA node as a tier uses it: one core copies blocks out of a region that
// no cache holds (a read) and into it (a write), block after block in large strides; and the time
// of one access, by a chain of addresses in random order in which each is known only when the one
// before has arrived.
//
// Thread safety: any thread; the measuring runs in a thread of its own, which is bound to the
// node's processors and memory where there are several nodes. Ownership: the region is freed at the
// end.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "service/profiler/device_figures.h"
#include "service/profiler/machine_scan.h"

namespace cairn::profiler {

struct MemoryMeasureOptions {
  double seconds = 1;
  // At most an eighth of what is available is taken.
  uint64_t region_bytes = uint64_t{256} << 20;
  bool bind = false;  // there are other nodes
  const std::atomic<bool>* cancelled = nullptr;
};

// Errors: kExhausted (no memory), kRetry (cancelled).
Result<DeviceFigures> measure_memory(const MemoryNode& node,
                                     const MemoryMeasureOptions& options = {});

}  // namespace cairn::profiler
