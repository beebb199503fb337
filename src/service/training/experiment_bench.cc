// SPDX-License-Identifier: Apache-2.0
#include "service/training/experiment_bench.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/random_source.h"

namespace cairn::training {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kFillBytes = 262144;
constexpr std::uint64_t kFillThreads = 16;
constexpr std::int64_t kNoTimeLimit = INT64_MAX / 2;
// A flush takes this long on a device that has swallowed nothing.
constexpr double kEmptyFlushSeconds = 0.05;

}  // namespace

DeviceBench::DeviceBench(std::string directory, profiler::TestFile file, std::uint64_t bytes,
                         const std::atomic<bool>& cancelled)
    : directory_(std::move(directory)),
      file_(std::move(file)),
      file_bytes_(bytes),
      cancelled_(cancelled),
      memory_(
          static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kThreadsMax * kRequestBytesMax))),
      engine_(profiler::make_uring_engine()) {
  if (engine_ == nullptr) engine_ = profiler::make_thread_engine();
  CAIRN_CHECK(engine_ != nullptr);
}

Result<std::unique_ptr<DeviceBench>> DeviceBench::create(const std::string& directory,
                                                         std::uint64_t bytes,
                                                         const std::atomic<bool>& cancelled) {
  const std::uint64_t whole = (bytes + kFillBytes - 1) / kFillBytes * kFillBytes;
  CAIRN_CHECK(whole > 0);
  auto file = profiler::TestFile::create(directory, whole);
  if (!file) return file.status();
  std::unique_ptr<DeviceBench> bench(
      new DeviceBench(directory, std::move(file.value()), whole, cancelled));
  if (bench->memory_ == nullptr) return Status::from_errno(ENOMEM, directory);
  CAIRN_RETURN_IF_ERROR(bench->fill());
  return bench;
}

Status DeviceBench::stopped() const {
  return {StatusCode::kRetry, directory_ + ": the training was stopped"};
}

// A file that is only preallocated reads as zeros without touching the device. The bytes cannot be
// compressed: some devices store zeros for nothing.
Status DeviceBench::fill() {
  RandomSource numbers(1);
  auto* words = reinterpret_cast<std::uint64_t*>(memory_.get());
  for (std::size_t index = 0; index < kThreadsMax * kRequestBytesMax / sizeof(*words); ++index) {
    words[index] = numbers.next();
  }
  Experiment whole;
  whole.access = AccessKind::kWrite;
  whole.threads = kFillThreads;
  whole.request_bytes = kFillBytes;
  whole.requests = file_bytes_ / kFillBytes;
  whole.address_range_bytes = file_bytes_;
  profiler::RequestRun run = request_run(whole, kNoTimeLimit);
  run.pattern.sequential = true;
  profiler::RequestTimes times = engine_->run(run);
  if (times.error_number == EINVAL && times.completed_ns.empty() && file_.is_direct()) {
    CAIRN_RETURN_IF_ERROR(file_.give_up_direct());
    run.descriptor = file_.descriptor();
    times = engine_->run(run);
  }
  if (times.error_number != 0) return Status::from_errno(times.error_number, directory_);
  if (cancelled_.load(std::memory_order_relaxed)) return stopped();
  CAIRN_CHECK(times.completed_ns.size() == whole.requests);
  return file_.flush().status();
}

profiler::RequestRun DeviceBench::request_run(const Experiment& experiment,
                                              std::int64_t time_max_ns) const {
  CAIRN_CHECK(experiment.threads >= 1 && experiment.threads <= kThreadsMax);
  CAIRN_CHECK(experiment.request_bytes <= kRequestBytesMax);
  const std::uint64_t range = std::min(experiment.address_range_bytes, file_bytes_);
  profiler::RequestRun run;
  run.pattern.direction = experiment.access == AccessKind::kRead ? profiler::Direction::kRead
                                                                 : profiler::Direction::kWrite;
  run.pattern.request_bytes = static_cast<std::uint32_t>(experiment.request_bytes);
  run.pattern.depth = static_cast<unsigned>(experiment.threads);
  run.pattern.region_bytes = range - range % experiment.request_bytes;
  run.descriptor = file_.descriptor();
  run.memory = memory_.get();
  run.budget_ns = time_max_ns;
  run.requests_max = experiment.requests;
  run.cancelled = &cancelled_;
  CAIRN_CHECK(run.pattern.region_bytes > 0);
  return run;
}

Result<ExperimentTime> DeviceBench::run(const Experiment& experiment, std::int64_t time_max_ns) {
  if (!file_.is_direct() && experiment.access == AccessKind::kRead) file_.drop_cache();
  const profiler::RequestTimes times = engine_->run(request_run(experiment, time_max_ns));
  if (times.error_number != 0) return Status::from_errno(times.error_number, directory_);
  if (cancelled_.load(std::memory_order_relaxed)) return stopped();
  if (times.completed_ns.empty()) {
    return Status(StatusCode::kUnavailable, directory_ + ": the device completed no request");
  }
  ExperimentTime time;
  time.requests = times.completed_ns.size();
  time.seconds = static_cast<double>(times.completed_ns.back()) * 1e-9;
  if (experiment.access == AccessKind::kWrite) {
    const Result<double> flushed = file_.flush();
    if (!flushed) return flushed.status();
    time.seconds += std::max(0.0, *flushed - kEmptyFlushSeconds);
  }
  return time;
}

Result<std::uint64_t> smallest_request(const std::string& directory) {
  auto file = profiler::TestFile::create(directory, kFillBytes);
  if (!file) return file.status();
  if (!file->is_direct()) return kSectorBytes;
  alignas(kPageBytes) std::byte sector[kPageBytes];
  const ssize_t count = ::pread(file->descriptor(), sector, kSectorBytes, 0);
  if (count < 0 && errno != EINVAL) return Status::from_errno(errno, directory);
  return count < 0 ? std::uint64_t{kPageBytes} : kSectorBytes;
}

}  // namespace cairn::training
