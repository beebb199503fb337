// SPDX-License-Identifier: Apache-2.0
// A device as a queue and a pipe: what a workload takes is latency as far as requests cannot
// overlap, or bytes as far as the device cannot pass on more.
//
//   time = max( requests * latency / min(threads, queue depth),
//               bytes * (1 + contention * threads) / min(threads * thread bandwidth,
//                                                        peak bandwidth) )
//
// Both min() and the max() have a smooth knee: max(a, b) is (a^k + b^k)^(1/k). With k = 1 a time is
// the sum of latency and size / bandwidth; with k = 16 the knee is nearly a corner. Several devices
// side by side (stripes over disks) have the queue depth and the peak of all. It is a roofline
// (Williams, Waterman, Patterson, CACM 2009) over Little's law, our own beside the paper's
// regressions, and safer where nothing was measured.
//
// The fit is in log time, so that each experiment counts by its relative error, by
// Levenberg-Marquardt with exact derivatives, for each knee of kKnees. What the experiments do not
// show (the queue depth, where no experiment has as many threads) stays near where it began.
//
// Contention, by which bytes take longer the more threads pass them on, is the linear part of
// Gunther's law of scalability (Guerrilla Capacity Planning, 2007). It is tried from kContentions,
// and is in a fit only where AIC is lower with it.
//
// Assumes one request per thread at a time, and that requests are alike.
//
// Thread safety: pure functions and values. Units: seconds, bytes, bytes per second.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/observations.h"

namespace cairn {

// All numbers are positive.
struct DeviceWorkload {
  double threads = 1;
  double requests = 1;  // of all threads
  double request_bytes = 1;
  double devices = 1;  // that share the requests

  double bytes() const { return requests * request_bytes; }
};

struct PhysicalDevice {
  double latency_seconds = 100e-6;
  double queue_depth = 32;  // requests that one device works on at a time
  double thread_bandwidth = 1e9;
  double peak_bandwidth = 2e9;  // of one device
  double knee = 4;
  double contention = 0;  // by which a thread of one device slows all bytes of it; 0 for none

  // Whether all numbers are positive and finite; the knee is at least 1, contention at least 0.
  bool is_valid() const;
  // Requires: is_valid(), and a workload of positive numbers.
  double seconds(const DeviceWorkload& workload) const;
  // "latency 82 us, queue depth 31, 1.2 GB/s a thread, 3.1 GB/s in all, knee 4", and
  // ", contention 0.008" where there is some.
  std::string text() const;
};

struct MeasuredWorkload {
  DeviceWorkload workload;
  double seconds = 0;
};

// A fitted device, with the spread of measurements around it.
struct PhysicalFit {
  static constexpr std::array<double, 5> kKnees{1, 2, 4, 8, 16};
  static constexpr std::array<double, 8> kContentions{0.0005, 0.001, 0.002, 0.004,
                                                      0.008,  0.016, 0.032, 0.064};
  static constexpr std::size_t kParameters = 5;

  PhysicalDevice device;
  double log_error = 0;  // standard deviation of ln(measured / predicted)
  std::size_t degrees_of_freedom = 0;

  // The interval is that of a measurement around this device; the device's own error is not in it.
  // The caller says whether the workload is an extrapolation.
  Prediction predict(const DeviceWorkload& workload) const;
};

// Errors: kInvalid, when there are not more measurements than kParameters, or one has a number that
// is not positive.
Result<PhysicalFit> fit_physical_device(std::span<const MeasuredWorkload> measured);

}  // namespace cairn
