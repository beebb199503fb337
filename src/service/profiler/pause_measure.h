// SPDX-License-Identifier: Apache-2.0
//
// What one request takes that finds an idle device, and what fsync takes.
//
// A program that computes between its requests meets an idle device. Where the device itself is
// slow, that helps little; where something limits how many requests a second it may have (a cloud's
// volume, a control group), a request after a pause is answered at once.
//
// Thread safety: any thread. Ownership: the file and the memory are the caller's; sync_latency()
// uses a file without a name. Units: seconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "service/profiler/request_engine.h"

namespace cairn::profiler {

struct PausedRequests {
  int descriptor = -1;
  std::byte* memory = nullptr;  // page-aligned, a page
  std::uint64_t file_bytes = 0;
  std::int64_t budget_ns = 0;  // of each measurement
  const std::atomic<bool>* cancelled = nullptr;
};

// The median; each request comes after a pause of twice `busy_latency`. 0 where nothing was
// completed.
double latency_after_pauses(Direction direction, const PausedRequests& requests,
                            double busy_latency);

// The mean of fsyncs, each behind a small record that was appended to a new file of the directory,
// one after the other. Errors: those of the file system, with the directory's name.
Result<double> sync_latency(const std::string& directory, const PausedRequests& requests);

}  // namespace cairn::profiler
