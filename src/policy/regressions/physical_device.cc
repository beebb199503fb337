// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/physical_device.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"

namespace cairn {
namespace {

// Logarithms of latency, queue depth, thread bandwidth and peak bandwidth, in this order.
using DeviceLogs = Eigen::Vector4d;
enum DeviceLog : Eigen::Index { kLatency, kQueueDepth, kThreadBandwidth, kPeakBandwidth };

// No device is beyond these; they keep a fit finite where the experiments do not show a parameter.
constexpr std::array<double, 4> kLowestDevice{1e-10, 1, 1, 1};
constexpr std::array<double, 4> kHighestDevice{1e5, 65536, 1e15, 1e15};

constexpr int kRoundsMax = 60;
constexpr double kDampingStart = 1e-2;
constexpr double kDampingMax = 1e8;
// A round that lowers the squared errors by less than this part of them is the last one.
constexpr double kProgressMin = 1e-9;

// ln of (e^(k a) + e^(k b))^(1/k), and how much of a change of `a` it follows.
struct SmoothLog {
  double value;
  double share_of_first;
};
SmoothLog smooth_max(double a, double b, double knee) {
  const double ratio = std::exp(-knee * std::abs(a - b));
  const double share_of_larger = 1 / (1 + ratio);
  CAIRN_DCHECK(!(share_of_larger < 0.5));
  return {std::max(a, b) + std::log1p(ratio) / knee,
          a >= b ? share_of_larger : 1 - share_of_larger};
}
SmoothLog smooth_min(double a, double b, double knee) {
  const SmoothLog negative = smooth_max(-a, -b, knee);
  return {-negative.value, negative.share_of_first};
}

// A workload in logarithms, as the formula needs it.
struct WorkloadLogs {
  double threads;
  double requests;
  double bytes;
  double devices;
  double seconds;  // measured
};

WorkloadLogs workload_logs(const DeviceWorkload& workload, double seconds) {
  return {std::log(workload.threads), std::log(workload.requests), std::log(workload.bytes()),
          std::log(workload.devices), std::log(seconds)};
}

struct LogTime {
  double value;
  DeviceLogs slope;  // by each parameter
};

// The parameters that are tried instead of fitted.
struct DeviceShape {
  double knee = 1;
  double contention = 0;
};

LogTime log_time(const DeviceLogs& device, const DeviceShape& shape, const WorkloadLogs& workload) {
  const double knee = shape.knee;
  const SmoothLog overlap =
      smooth_min(workload.threads, device[kQueueDepth] + workload.devices, knee);
  const SmoothLog bandwidth = smooth_min(workload.threads + device[kThreadBandwidth],
                                         device[kPeakBandwidth] + workload.devices, knee);
  const double waiting = workload.requests + device[kLatency] - overlap.value;
  const double slowed =
      std::log1p(shape.contention * std::exp(workload.threads - workload.devices));
  const SmoothLog time = smooth_max(waiting, workload.bytes + slowed - bandwidth.value, knee);
  const double by_waiting = time.share_of_first;
  const double by_bytes = 1 - by_waiting;
  LogTime result;
  result.value = time.value;
  result.slope << by_waiting, -by_waiting * (1 - overlap.share_of_first),
      -by_bytes * bandwidth.share_of_first, -by_bytes * (1 - bandwidth.share_of_first);
  return result;
}

DeviceLogs within_limits(DeviceLogs device) {
  for (Eigen::Index index = 0; index < device.size(); ++index) {
    const auto place = static_cast<std::size_t>(index);
    device[index] =
        std::clamp(device[index], std::log(kLowestDevice[place]), std::log(kHighestDevice[place]));
  }
  return device;
}

// Finds the parameters for one shape.
class DeviceFitter {
 public:
  DeviceFitter(const std::vector<WorkloadLogs>& workloads, const DeviceShape& shape)
      : workloads_(workloads), shape_(shape) {
    CAIRN_DCHECK(shape.knee >= 1);
    CAIRN_DCHECK(shape.contention >= 0);
  }

  // Goes downhill from there.
  void run(const DeviceLogs& start) {
    device_ = within_limits(start);
    squares_ = squares_at(device_);
    double damping = kDampingStart;
    for (int round = 0; round < kRoundsMax && damping < kDampingMax; ++round) {
      const double before = squares_;
      linearise();
      while (damping < kDampingMax && !step(damping)) damping *= 10;
      damping /= 10;
      CAIRN_DCHECK(!(squares_ > before));
      if (before - squares_ <= kProgressMin * before) break;
    }
  }

  const DeviceLogs& device() const { return device_; }
  double squares() const { return squares_; }

 private:
  double squares_at(const DeviceLogs& device) const {
    double squares = 0;
    for (const WorkloadLogs& workload : workloads_) {
      const double error = log_time(device, shape_, workload).value - workload.seconds;
      squares += error * error;
    }
    return squares;
  }

  // The normal equations at device_.
  void linearise() {
    curvature_.setZero();
    gradient_.setZero();
    for (const WorkloadLogs& workload : workloads_) {
      const LogTime time = log_time(device_, shape_, workload);
      curvature_ += time.slope * time.slope.transpose();
      gradient_ += time.slope * (time.value - workload.seconds);
    }
  }

  // Returns: whether the step lowered the squares; only then it is taken.
  bool step(double damping) {
    Eigen::Matrix4d damped = curvature_;
    // The trace keeps a parameter that no experiment shows where it is.
    damped.diagonal().array() +=
        damping * (curvature_.diagonal().array() + 1e-6 * curvature_.trace() + 1e-300);
    const DeviceLogs next = within_limits(device_ - damped.ldlt().solve(gradient_));
    const double squares = squares_at(next);
    if (!(squares < squares_)) return false;
    device_ = next;
    squares_ = squares;
    return true;
  }

  const std::vector<WorkloadLogs>& workloads_;
  const DeviceShape shape_;
  DeviceLogs device_ = DeviceLogs::Zero();
  double squares_ = 0;
  Eigen::Matrix4d curvature_;
  Eigen::Vector4d gradient_;
};

// The fastest that any experiment has shown of each parameter.
DeviceLogs first_guess(const std::vector<WorkloadLogs>& workloads, double queue_depth) {
  DeviceLogs guess;
  guess << std::log(kHighestDevice[kLatency]), std::log(queue_depth), 0, 0;
  for (const WorkloadLogs& one : workloads) {
    const double overlap = std::min(one.threads, guess[kQueueDepth] + one.devices);
    guess[kLatency] = std::min(guess[kLatency], one.seconds - one.requests + overlap);
    const double bandwidth = one.bytes - one.seconds;
    guess[kThreadBandwidth] = std::max(guess[kThreadBandwidth], bandwidth - one.threads);
    guess[kPeakBandwidth] = std::max(guess[kPeakBandwidth], bandwidth - one.devices);
  }
  return guess;
}

Status check_measured(std::span<const MeasuredWorkload> measured) {
  if (measured.size() <= PhysicalFit::kParameters) {
    return {StatusCode::kInvalid,
            "a device needs more than " + std::to_string(PhysicalFit::kParameters) +
                " measurements; there are " + std::to_string(measured.size())};
  }
  for (std::size_t row = 0; row < measured.size(); ++row) {
    const auto& [workload, seconds] = measured[row];
    for (const double number :
         {workload.threads, workload.requests, workload.request_bytes, workload.devices, seconds}) {
      if (!(number > 0) || !std::isfinite(number)) {
        return {StatusCode::kInvalid,
                "measurement " + std::to_string(row) + " has a number that is not positive"};
      }
    }
  }
  return Status::ok();
}

DeviceLogs device_logs(const PhysicalDevice& device) {
  DeviceLogs logs;
  logs << std::log(device.latency_seconds), std::log(device.queue_depth),
      std::log(device.thread_bandwidth), std::log(device.peak_bandwidth);
  return logs;
}

PhysicalDevice device_of(const DeviceLogs& logs, const DeviceShape& shape) {
  return {std::exp(logs[kLatency]),
          std::exp(logs[kQueueDepth]),
          std::exp(logs[kThreadBandwidth]),
          std::exp(logs[kPeakBandwidth]),
          shape.knee,
          shape.contention};
}

struct BestFit {
  DeviceLogs device = DeviceLogs::Zero();
  DeviceShape shape;
  double squares = -1;  // none yet

  void take(const DeviceFitter& fitter, const DeviceShape& of_shape) {
    if (squares >= 0 && fitter.squares() >= squares) return;
    *this = {fitter.device(), of_shape, fitter.squares()};
  }
};

// From the best without contention on. Returns: that one, where AIC is not lower with contention.
BestFit with_contention(const std::vector<WorkloadLogs>& workloads, const BestFit& without) {
  // Few experiments would show contention by chance.
  constexpr std::size_t kExperimentsMin = 20;
  constexpr double kAicOfParameter = 2;
  const auto count = static_cast<double>(workloads.size());
  if (workloads.size() < kExperimentsMin) return without;
  BestFit best = without;
  for (const double contention : PhysicalFit::kContentions) {
    const DeviceShape shape{without.shape.knee, contention};
    DeviceFitter fitter(workloads, shape);
    fitter.run(without.device);
    best.take(fitter, shape);
  }
  const bool is_better = best.squares < without.squares * std::exp(-kAicOfParameter / count);
  return is_better ? best : without;
}

}  // namespace

bool PhysicalDevice::is_valid() const {
  for (const double number : {latency_seconds, queue_depth, thread_bandwidth, peak_bandwidth}) {
    if (!(number > 0) || !std::isfinite(number)) return false;
  }
  if (!(contention >= 0) || !std::isfinite(contention)) return false;
  return knee >= 1 && std::isfinite(knee);
}

double PhysicalDevice::seconds(const DeviceWorkload& workload) const {
  CAIRN_DCHECK(is_valid());
  CAIRN_DCHECK(workload.threads > 0);
  CAIRN_DCHECK(workload.bytes() > 0);
  return std::exp(
      log_time(device_logs(*this), {knee, contention}, workload_logs(workload, 1)).value);
}

std::string PhysicalDevice::text() const {
  char line[160];
  std::snprintf(line, sizeof(line),
                "latency %.3g us, queue depth %.3g, %.3g GB/s a thread, %.3g GB/s in all, knee %g",
                latency_seconds * 1e6, queue_depth, thread_bandwidth / 1e9, peak_bandwidth / 1e9,
                knee);
  std::string text = line;
  if (contention > 0) {
    std::snprintf(line, sizeof(line), ", contention %g", contention);
    text += line;
  }
  return text;
}

Prediction PhysicalFit::predict(const DeviceWorkload& workload) const {
  const double reach = std::exp(interval_factor(degrees_of_freedom) * log_error);
  CAIRN_DCHECK(reach >= 1);
  const double value = device.seconds(workload);
  return {value, value / reach, value * reach, false};
}

Result<PhysicalFit> fit_physical_device(std::span<const MeasuredWorkload> measured) {
  CAIRN_RETURN_IF_ERROR(check_measured(measured));
  std::vector<WorkloadLogs> workloads;
  double threads_max = 1;
  for (const MeasuredWorkload& one : measured) {
    workloads.push_back(workload_logs(one.workload, one.seconds));
    threads_max = std::max(threads_max, one.workload.threads);
  }
  BestFit best;
  for (const double knee : PhysicalFit::kKnees) {
    const DeviceShape shape{knee, 0};
    // A device that overlaps everything, and one that overlaps little.
    for (const double queue_depth : {threads_max, std::sqrt(threads_max)}) {
      DeviceFitter fitter(workloads, shape);
      fitter.run(first_guess(workloads, queue_depth));
      best.take(fitter, shape);
    }
  }
  CAIRN_DCHECK(best.squares >= 0);
  best = with_contention(workloads, best);
  PhysicalFit fit;
  fit.device = device_of(best.device, best.shape);
  CAIRN_DCHECK(fit.device.is_valid());
  fit.degrees_of_freedom =
      measured.size() - PhysicalFit::kParameters - (best.shape.contention > 0 ? 1 : 0);
  fit.log_error = std::sqrt(best.squares / static_cast<double>(fit.degrees_of_freedom));
  return fit;
}

}  // namespace cairn
