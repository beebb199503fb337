// SPDX-License-Identifier: Apache-2.0
//
// Measures the device under a directory: reads and writes of 4 KiB, 64 KiB and 1 MiB, one and eight
// in flight, past the page cache, on a file that was written before (a file that is only
// preallocated reads as zeros without touching the device).
//
// 1 MiB requests go through the file in order, smaller ones jump. What a device swallows into a
// volatile cache is paid: each phase of writing ends with a flush, whose time counts. The rates are
// those of rate_of_series(), which a token bucket's pauses and first credit do not disturb. On a
// rotating disk jumps within the test file are shorter than across the whole disk, so a random
// access of a program to large data may cost up to twice the latency found here. A file server
// takes and answers from its own memory what it was sent a moment ago, which no client can prevent:
// the bandwidth of a network file system is found too high as long as the test file fits in there.
//
// Thread safety: any thread, one measurement of a device at a time to mean anything. Ownership: the
// test file has no name and is gone when the function returns or the process dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "service/profiler/device_figures.h"

namespace cairn::profiler {

inline constexpr double kMeasureSecondsDefault = 7;
inline constexpr double kMeasureSecondsMin = 0.2;
inline constexpr double kMeasureSecondsMax = 600;
inline constexpr uint64_t kMeasureSpaceDefault = uint64_t{256} << 20;
inline constexpr uint64_t kMeasureSpaceMin = uint64_t{8} << 20;

struct MeasureOptions {
  // The time that the requests take; below four seconds a device that works in slices is found
  // less exactly.
  double seconds = kMeasureSecondsDefault;
  // The test file; at most a quarter of what is free is taken.
  uint64_t space_bytes = kMeasureSpaceDefault;
  bool allow_io_uring = true;
  // Ends the measurement at the next request: what a service that measures in idle time sets when
  // a program begins to do I/O.
  const std::atomic<bool>* cancelled = nullptr;
  // Called before each phase: what comes now, and which part of the time is over (0 to 1).
  std::function<void(std::string_view phase, double share)> progress;
};

// Errors: kNotFound, kDenied (permission, read-only), kInvalid (no directory, in memory, options),
// kExhausted (no room), kUnavailable (the device fails, or is too slow for the time), kRetry
// (cancelled). Messages begin with the directory's name.
Result<DeviceFigures> measure_device(const std::string& directory,
                                     const MeasureOptions& options = {});

}  // namespace cairn::profiler
