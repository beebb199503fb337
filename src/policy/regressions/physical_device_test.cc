// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/physical_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "policy/regressions/testing/noise.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// What the formula says, with corners.
double by_hand(const PhysicalDevice& device, const DeviceWorkload& load) {
  const double overlap = std::min(load.threads, device.queue_depth * load.devices);
  const double bandwidth =
      std::min(load.threads * device.thread_bandwidth, device.peak_bandwidth * load.devices);
  return std::max(load.requests * device.latency_seconds / overlap, load.bytes() / bandwidth);
}

// A full factorial over the paper's levels, with more threads and sizes.
std::vector<DeviceWorkload> many_workloads() {
  std::vector<DeviceWorkload> workloads;
  for (double threads = 1; threads <= 128; threads *= 2) {
    for (const double bytes : {512.0, 4096.0, 8192.0, 65536.0, 262144.0, 1048576.0}) {
      for (const double requests : {1000.0, 20000.0, 400000.0}) {
        workloads.push_back({threads, requests, bytes, 1});
      }
    }
  }
  return workloads;
}

std::vector<MeasuredWorkload> measured_on(const PhysicalDevice& device, double spread,
                                          std::uint64_t seed) {
  NoiseSource source(seed);
  std::vector<MeasuredWorkload> measured;
  for (const DeviceWorkload& load : many_workloads()) {
    measured.push_back({load, device.seconds(load) * source.factor(spread)});
  }
  return measured;
}

void expect_within(double value, double expected, double part, const std::string& what) {
  EXPECT_NEAR(value, expected, part * expected) << what;
}

TEST(PhysicalDevice, ASharpKneeIsTheFormula) {
  const PhysicalDevice device{80e-6, 32, 1e9, 3e9, 1000};
  for (const DeviceWorkload& load : many_workloads()) {
    expect_within(device.seconds(load), by_hand(device, load), 0.003, "seconds");
  }
  const DeviceWorkload striped{64, 1e4, 1e6, 4};
  expect_within(device.seconds(striped), 1e10 / 12e9, 0.003, "four devices");
}

TEST(PhysicalDevice, AKneeOfOneIsLatencyPlusSizeByBandwidth) {
  const PhysicalDevice device{1e-3, 1e4, 1e8, 1e12, 1};
  expect_within(device.seconds({1, 50, 1e6, 1}), 50 * (1e-3 + 1e6 / 1e8), 0.001, "seconds");
}

TEST(PhysicalDevice, LatencyAndBandwidthAreRecoveredFromNoise) {
  for (const PhysicalDevice& device :
       {PhysicalDevice{80e-6, 32, 1e9, 3e9, 4}, PhysicalDevice{8e-3, 4, 150e6, 180e6, 2},
        PhysicalDevice{10e-6, 64, 2e9, 7e9, 16}, PhysicalDevice{500e-6, 16, 2e8, 9e8, 8}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Result<PhysicalFit> fit = fit_physical_device(measured_on(device, 0.05, seed));
      ASSERT_TRUE(fit.is_ok());
      const std::string what = device.text() + " against " + fit->device.text();
      expect_within(fit->device.latency_seconds, device.latency_seconds, 0.05, what);
      expect_within(fit->device.peak_bandwidth, device.peak_bandwidth, 0.05, what);
      expect_within(fit->log_error, 0.05, 0.15, what);
    }
  }
}

TEST(PhysicalDevice, ExactMeasurementsAreFittedExactly) {
  const PhysicalDevice device{80e-6, 32, 1e9, 3e9, 4};
  const Result<PhysicalFit> fit = fit_physical_device(measured_on(device, 0, 1));
  expect_within(fit->device.latency_seconds, 80e-6, 1e-4, "latency");
  expect_within(fit->device.queue_depth, 32, 1e-4, "queue depth");
  expect_within(fit->device.thread_bandwidth, 1e9, 1e-4, "of a thread");
  expect_within(fit->device.peak_bandwidth, 3e9, 1e-4, "in all");
  EXPECT_EQ(fit->device.knee, 4);
}

TEST(PhysicalDevice, ContentionIsFoundWhereThereIsSome) {
  const PhysicalDevice device{80e-6, 32, 1e9, 3e9, 2, 0.016};
  EXPECT_GT(device.seconds({64, 1000, 262144, 1}), 1.3 * device.seconds({4, 1000, 262144, 1}));
  const Result<PhysicalFit> fit = fit_physical_device(measured_on(device, 0.05, 1));
  ASSERT_TRUE(fit.is_ok());
  EXPECT_NEAR(fit->device.contention, 0.016, 0.009);
  expect_within(fit->log_error, 0.05, 0.15, fit->device.text());
  EXPECT_THAT(fit->device.text(), HasSubstr(", contention 0.0"));
  const PhysicalDevice other{80e-6, 32, 1e9, 3e9, 2};
  EXPECT_LT(fit_physical_device(measured_on(other, 0.05, 1))->device.contention, 0.001);
}

TEST(PhysicalDevice, NineOfTenMeasurementsAreInTheInterval) {
  const PhysicalDevice device{80e-6, 32, 1e9, 3e9, 4};
  const PhysicalFit fit = *fit_physical_device(measured_on(device, 0.1, 1));
  unsigned inside = 0;
  const std::vector<MeasuredWorkload> others = measured_on(device, 0.1, 2);
  for (const auto& [load, seconds] : others) {
    const Prediction prediction = fit.predict(load);
    inside += seconds >= prediction.lower && seconds <= prediction.upper ? 1 : 0;
  }
  EXPECT_NEAR(inside, 0.9 * static_cast<double>(others.size()),
              0.07 * static_cast<double>(others.size()));
}

TEST(PhysicalDevice, AQueueThatNobodyFilledStaysFinite) {
  std::vector<MeasuredWorkload> measured;
  const PhysicalDevice device{80e-6, 32, 1e9, 3e9, 16};
  for (const double bytes : {512.0, 4096.0, 65536.0, 262144.0}) {
    for (const double requests : {100.0, 1000.0}) {
      const DeviceWorkload load{1, requests, bytes, 1};
      measured.push_back({load, device.seconds(load)});
    }
  }
  const Result<PhysicalFit> fit = fit_physical_device(measured);
  ASSERT_TRUE(fit.is_ok());
  EXPECT_TRUE(std::isfinite(fit->predict({64, 1000, 4096, 1}).upper));
  expect_within(fit->device.seconds({1, 500, 8192, 1}), device.seconds({1, 500, 8192, 1}), 0.03,
                "inside");
}

TEST(PhysicalDevice, BadMeasurementsAreRefused) {
  std::vector<MeasuredWorkload> measured = measured_on({}, 0.05, 1);
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    measured[7].seconds = bad;
    const Result<PhysicalFit> fit = fit_physical_device(measured);
    ASSERT_FALSE(fit.is_ok()) << bad;
    EXPECT_THAT(fit.status().message(), HasSubstr("measurement 7"));
  }
  measured.resize(5);
  EXPECT_THAT(fit_physical_device(measured).status().message(), HasSubstr("there are 5"));
}

}  // namespace
}  // namespace cairn
