// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/device_measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "base/check.h"
#include "base/clock.h"
#include "base/size_text.h"
#include "service/profiler/directory_state.h"
#include "service/profiler/pause_measure.h"
#include "service/profiler/test_file.h"

namespace cairn::profiler {
namespace {

constexpr uint32_t kSmallBytes = 4 << 10;
constexpr uint32_t kMediumBytes = 64 << 10;
constexpr uint32_t kLargeBytes = 1 << 20;
constexpr unsigned kDepthMax = 8;
constexpr size_t kPageBytes = 4096;
// The start of each series that is left out: caches fill, the throttle's first credit is spent.
constexpr double kSkippedShare = 0.1;
// A flush takes this long on a device that has swallowed nothing.
constexpr double kEmptyFlushSeconds = 0.05;
// Before the file holds enough, a slow device may take this many times its share of the time.
constexpr double kFillPatience = 6;

struct Phase {
  Direction direction;
  uint32_t request_bytes;
  unsigned depth;
  double weight;  // its part of the time
};

constexpr double kFillWeight = 0.6;
// Each of the three that wait between requests has it.
constexpr double kPauseWeight = 0.3;
// The two that give the bandwidth run long enough for a dozen slices of a token bucket, the two
// that give the latency for half of that, the others for two.
constexpr std::array kPhases = {
    Phase{Direction::kWrite, kLargeBytes, 8, 1.5},   Phase{Direction::kRead, kLargeBytes, 8, 1.5},
    Phase{Direction::kWrite, kSmallBytes, 1, 0.7},   Phase{Direction::kRead, kSmallBytes, 1, 0.7},
    Phase{Direction::kWrite, kSmallBytes, 8, 0.25},  Phase{Direction::kRead, kSmallBytes, 8, 0.25},
    Phase{Direction::kWrite, kMediumBytes, 1, 0.25}, Phase{Direction::kRead, kMediumBytes, 1, 0.25},
    Phase{Direction::kWrite, kMediumBytes, 8, 0.25}, Phase{Direction::kRead, kMediumBytes, 8, 0.25},
    Phase{Direction::kWrite, kLargeBytes, 1, 0.25},  Phase{Direction::kRead, kLargeBytes, 1, 0.25},
};

static_assert(std::all_of(kPhases.begin(), kPhases.end(), [](const Phase& phase) {
  return phase.request_bytes <= kLargeBytes && phase.depth >= 1 && phase.depth <= kDepthMax;
}));

constexpr double total_weight() {
  double sum = kFillWeight + 3 * kPauseWeight;
  for (const Phase& phase : kPhases) sum += phase.weight;
  return sum;
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using RequestMemory = std::unique_ptr<std::byte, FreeMemory>;

// Page-aligned and incompressible: some devices and file systems store zeros for nothing.
RequestMemory make_request_memory() {
  constexpr size_t kBytes = size_t{kLargeBytes} * kDepthMax;
  RequestMemory memory(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBytes)));
  if (memory == nullptr) return memory;
  std::minstd_rand numbers(static_cast<unsigned>(monotonic_ns()));
  auto* words = reinterpret_cast<uint32_t*>(memory.get());
  for (size_t index = 0; index < kBytes / sizeof(uint32_t); ++index) {
    words[index] = static_cast<uint32_t>(numbers());
  }
  return memory;
}

Status check_options(const MeasureOptions& options) {
  if (!(options.seconds >= kMeasureSecondsMin && options.seconds <= kMeasureSecondsMax)) {
    return {StatusCode::kInvalid, "the time of a measurement is 0.2 to 600 seconds"};
  }
  if (options.space_bytes < kMeasureSpaceMin) {
    return {StatusCode::kInvalid,
            "a measurement needs " + format_size(kMeasureSpaceMin) + " of space or more"};
  }
  return Status::ok();
}

// Returns: how large the test file becomes.
Result<uint64_t> check_place(const std::string& directory, uint64_t space_bytes) {
  const DirectoryState state = read_directory_state(directory);
  if (!state.exists) return Status::from_errno(ENOENT, directory);
  if (!state.is_directory) return Status(StatusCode::kInvalid, directory + ": is not a directory");
  if (state.read_only_mount) return Status::from_errno(EROFS, directory);
  if (!state.writable) return Status::from_errno(EACCES, directory);
  if (state.in_memory) {
    return Status(StatusCode::kInvalid,
                  directory + ": is in memory (" + state.file_system + "), not on a device");
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  // Some file systems in user space do not say how large they are; the first write then tells.
  const uint64_t room = state.total_bytes == 0 ? space_bytes : state.free_bytes / 4;
  const uint64_t free_bytes = std::min<uint64_t>(room, limit.rlim_cur);
  const uint64_t bytes = std::min(space_bytes, free_bytes) / kLargeBytes * kLargeBytes;
  if (bytes < kMeasureSpaceMin) {
    return Status(StatusCode::kExhausted, directory + ": only " + format_size(state.free_bytes) +
                                              " free; a measurement needs " +
                                              format_size(kMeasureSpaceMin * 4));
  }
  return bytes;
}

class DeviceMeasurement {
 public:
  DeviceMeasurement(const std::string& directory, const MeasureOptions& options, TestFile file,
                    uint64_t file_bytes)
      : directory_(directory),
        options_(options),
        file_(std::move(file)),
        file_bytes_(file_bytes),
        memory_(make_request_memory()) {
    if (options.allow_io_uring) engine_ = make_uring_engine();
    if (engine_ == nullptr) engine_ = make_thread_engine();
    CAIRN_CHECK(engine_ != nullptr && file_bytes_ >= kMeasureSpaceMin);
  }

  Result<DeviceFigures> run() {
    if (memory_ == nullptr) return Status::from_errno(ENOMEM, directory_);
    const int64_t start_ns = monotonic_ns();
    CAIRN_RETURN_IF_ERROR(fill());
    DeviceFigures figures;
    double done = kFillWeight;
    for (const Phase& phase : kPhases) {
      auto cell = measure(phase, done / total_weight());
      if (!cell.is_ok()) return cell.status();
      figures.cells.push_back(cell.value());
      done += phase.weight;
    }
    static_assert(kPhases[0].direction == Direction::kWrite &&
                  kPhases[1].direction == Direction::kRead);
    static_assert(kPhases[2].direction == Direction::kWrite &&
                  kPhases[3].direction == Direction::kRead);
    CAIRN_CHECK(figures.cells.size() == kPhases.size());
    figures.write_bandwidth = figures.cells[0].bandwidth;
    figures.read_bandwidth = figures.cells[1].bandwidth;
    figures.write_latency = figures.cells[2].latency;
    figures.read_latency = figures.cells[3].latency;
    CAIRN_RETURN_IF_ERROR(measure_after_pauses(&figures));
    figures.direct = file_.is_direct();
    figures.seconds = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
    return figures;
  }

 private:
  int64_t budget_ns(double weight) const {
    return static_cast<int64_t>(options_.seconds * weight / total_weight() * 1e9);
  }

  void tell(std::string_view phase, double share) const {
    if (options_.progress) options_.progress(phase, share);
  }

  bool is_cancelled() const {
    return options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed);
  }

  Status failed(int error_number) const { return Status::from_errno(error_number, directory_); }

  RequestRun request_run(const Phase& phase) const {
    RequestRun run;
    run.pattern = {.direction = phase.direction,
                   .request_bytes = phase.request_bytes,
                   .depth = phase.depth,
                   .sequential = phase.request_bytes == kLargeBytes,
                   .region_bytes = file_bytes_};
    run.descriptor = file_.descriptor();
    run.memory = memory_.get();
    run.budget_ns = budget_ns(phase.weight);
    run.cancelled = options_.cancelled;
    return run;
  }

  // Writes as much of the file as the time allows; the rest stays preallocated and unused.
  Status fill() {
    tell("filling the test file", 0);
    const Phase phase{Direction::kWrite, kLargeBytes, kDepthMax, kFillWeight};
    const uint64_t requests = file_bytes_ / kLargeBytes;
    const uint64_t enough = kMeasureSpaceMin / kLargeBytes;
    RequestRun run = request_run(phase);
    run.requests_max = requests;
    RequestTimes times = engine_->run(run);
    if (times.error_number == EINVAL && times.completed_ns.empty() && file_.is_direct()) {
      CAIRN_RETURN_IF_ERROR(file_.give_up_direct());
      run = request_run(phase);
      run.requests_max = requests;
      times = engine_->run(run);
    }
    if (times.error_number == 0 && times.completed_ns.size() < enough && !is_cancelled()) {
      run.requests_max = enough;
      run.budget_ns = budget_ns(kFillWeight * kFillPatience);
      times = engine_->run(run);
    }
    if (times.error_number != 0) return failed(times.error_number);
    if (is_cancelled()) return {StatusCode::kRetry, directory_ + ": the measurement was stopped"};
    if (times.completed_ns.size() < enough) {
      return {StatusCode::kUnavailable, directory_ + ": the device is too slow to be measured in " +
                                            format_duration(options_.seconds)};
    }
    file_bytes_ = times.completed_ns.size() * kLargeBytes;
    return file_.flush().status();
  }

  Result<CellFigures> measure(const Phase& phase, double share) {
    tell(std::string(phase.direction == Direction::kRead ? "reading " : "writing ") +
             format_size(phase.request_bytes) + " x " + std::to_string(phase.depth),
         share);
    RequestRun run = request_run(phase);
    if (!file_.is_direct() && phase.direction == Direction::kRead) {
      // The page cache answers whatever is read for a second time.
      file_.drop_cache();
      run.requests_max = file_bytes_ / phase.request_bytes;
    }
    const RequestTimes times = engine_->run(run);
    if (times.error_number != 0) return failed(times.error_number);
    if (is_cancelled()) {
      return Status(StatusCode::kRetry, directory_ + ": the measurement was stopped");
    }
    if (times.completed_ns.empty()) {
      return Status(StatusCode::kUnavailable,
                    directory_ + ": no request was completed in the time of the measurement");
    }
    const auto skip_ns = static_cast<int64_t>(static_cast<double>(run.budget_ns) * kSkippedShare);
    SeriesRate rate = rate_of_series(times.completed_ns, skip_ns);
    if (phase.direction == Direction::kWrite) {
      const auto flushed = file_.flush();
      if (!flushed.is_ok()) return flushed.status();
      const double swallowed = std::max(0.0, flushed.value() - kEmptyFlushSeconds);
      const double whole = static_cast<double>(times.completed_ns.back()) * 1e-9;
      rate.per_second = rate.per_second.scaled(whole / (whole + swallowed));
    }
    return CellFigures{.direction = phase.direction,
                       .request_bytes = phase.request_bytes,
                       .depth = phase.depth,
                       .requests = rate.requests,
                       .bandwidth = rate.per_second.scaled(phase.request_bytes),
                       .latency = rate.per_second.inverted(phase.depth)};
  }

  Status measure_after_pauses(DeviceFigures* figures) {
    tell("single requests", 1 - 3 * kPauseWeight / total_weight());
    const PausedRequests requests = {.descriptor = file_.descriptor(),
                                     .memory = memory_.get(),
                                     .file_bytes = file_bytes_,
                                     .budget_ns = budget_ns(kPauseWeight),
                                     .cancelled = options_.cancelled};
    file_.drop_cache();
    figures->read_idle_latency =
        latency_after_pauses(Direction::kRead, requests, figures->read_latency.value);
    figures->write_idle_latency =
        latency_after_pauses(Direction::kWrite, requests, figures->write_latency.value);
    const auto synced = sync_latency(directory_, requests);
    if (!synced.is_ok()) return synced.status();
    figures->sync_latency = synced.value();
    return Status::ok();
  }

  const std::string& directory_;
  const MeasureOptions& options_;
  TestFile file_;
  uint64_t file_bytes_;
  RequestMemory memory_;
  std::unique_ptr<RequestEngine> engine_;
};

}  // namespace

Result<DeviceFigures> measure_device(const std::string& directory, const MeasureOptions& options) {
  CAIRN_RETURN_IF_ERROR(check_options(options));
  const auto bytes = check_place(directory, options.space_bytes);
  if (!bytes.is_ok()) return bytes.status();
  auto file = TestFile::create(directory, bytes.value());
  if (!file.is_ok()) return file.status();
  return DeviceMeasurement(directory, options, std::move(file.value()), bytes.value()).run();
}

}  // namespace cairn::profiler
