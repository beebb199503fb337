// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/pause_measure.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "service/profiler/test_file.h"

namespace cairn::profiler {
namespace {

constexpr std::size_t kRequestBytes = 4096;
constexpr std::size_t kRequestsMax = 200;
constexpr std::size_t kSyncsMin = 3;

bool is_stopped(const PausedRequests& requests) {
  return requests.cancelled != nullptr && requests.cancelled->load(std::memory_order_relaxed);
}

void wait_for(double seconds) {
  constexpr double kSecondsMax = 0.2;
  const double length = std::clamp(seconds, 0.0, kSecondsMax);
  const timespec time{0, static_cast<long>(length * static_cast<double>(kNanosPerSecond))};
  ::nanosleep(&time, nullptr);
}

double seconds_since(std::int64_t began_ns) {
  return static_cast<double>(monotonic_ns() - began_ns) / static_cast<double>(kNanosPerSecond);
}

}  // namespace

double latency_after_pauses(Direction direction, const PausedRequests& requests,
                            double busy_latency) {
  CAIRN_CHECK(requests.file_bytes >= kRequestBytes);
  CAIRN_CHECK(busy_latency > 0);
  const RequestPattern pattern = {.direction = direction,
                                  .request_bytes = kRequestBytes,
                                  .depth = 1,
                                  .sequential = false,
                                  .region_bytes = requests.file_bytes};
  std::vector<double> times;
  const std::int64_t end_ns = monotonic_ns() + requests.budget_ns;
  while (monotonic_ns() < end_ns && times.size() < kRequestsMax && !is_stopped(requests)) {
    wait_for(2 * busy_latency);
    const auto offset = static_cast<off_t>(request_offset(pattern, times.size()));
    const std::int64_t began_ns = monotonic_ns();
    const ssize_t done =
        direction == Direction::kRead
            ? ::pread(requests.descriptor, requests.memory, kRequestBytes, offset)
            : ::pwrite(requests.descriptor, requests.memory, kRequestBytes, offset);
    if (done != static_cast<ssize_t>(kRequestBytes)) break;
    times.push_back(seconds_since(began_ns));
  }
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Result<double> sync_latency(const std::string& directory, const PausedRequests& requests) {
  // An unnamed file of its own, which grows: what a log does.
  auto file = TestFile::create(directory, kRequestBytes);
  if (!file.is_ok()) return file.status();
  const int descriptor = file.value().descriptor();
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (::fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) != 0)
    return Status::from_errno(errno, directory);
  std::size_t syncs = 0;
  const std::int64_t began_ns = monotonic_ns();
  while (!is_stopped(requests) &&
         (syncs < kSyncsMin ||
          (monotonic_ns() - began_ns < requests.budget_ns && syncs < kRequestsMax))) {
    const auto offset = static_cast<off_t>((syncs + 1) * kRequestBytes);
    if (::pwrite(descriptor, requests.memory, kRequestBytes, offset) < 0 ||
        ::fsync(descriptor) != 0) {
      return Status::from_errno(errno, directory);
    }
    ++syncs;
  }
  if (syncs == 0) return Status(StatusCode::kRetry, directory + ": the measurement was stopped");
  return seconds_since(began_ns) / static_cast<double>(syncs);
}

}  // namespace cairn::profiler
