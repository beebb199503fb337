// SPDX-License-Identifier: Apache-2.0
//
// Keeps a number of requests to one file in flight and notes when each was completed: by io_uring,
// or by one thread per request in flight where the kernel or a container's filter has no io_uring.
//
// Thread safety: one thread at a time. Ownership: the file and the memory are the caller's; no
// request is in flight any more when run() returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::profiler {

enum class Direction : uint8_t { kRead, kWrite };

struct RequestPattern {
  Direction direction = Direction::kRead;
  uint32_t request_bytes = 4096;
  unsigned depth = 1;         // requests in flight
  bool sequential = false;    // else in large strides that come to every place once
  uint64_t region_bytes = 0;  // the first bytes of the file; a multiple of request_bytes
};

struct RequestRun {
  RequestPattern pattern;
  int descriptor = -1;
  std::byte* memory = nullptr;  // page-aligned, depth * request_bytes
  int64_t budget_ns = 0;        // after which no request is started any more
  uint64_t requests_max = UINT64_MAX;
  const std::atomic<bool>* cancelled = nullptr;
};

struct RequestTimes {
  std::vector<int64_t> completed_ns;  // ascending, since the start
  int error_number = 0;               // of the first request that failed; nothing is started then
};

class RequestEngine {
 public:
  virtual ~RequestEngine() = default;
  virtual RequestTimes run(const RequestRun& run) = 0;
};

std::unique_ptr<RequestEngine> make_uring_engine();  // null where there is no io_uring
std::unique_ptr<RequestEngine> make_thread_engine();

// Where request number `index` of the pattern goes.
uint64_t request_offset(const RequestPattern& pattern, uint64_t index);

}  // namespace cairn::profiler
