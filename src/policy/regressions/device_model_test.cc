// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/device_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "policy/regressions/experiment_design.h"
#include "policy/regressions/testing/noise.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

using PointTime = double (*)(std::span<const double> point);

// The writes of a design, with the times that a device would take for them.
Observations trained_on(PointTime seconds, double spread) {
  DesignRequest request;
  request.device_bytes = 500'000'000'000;
  request.budget_seconds = 6 * 3600;
  request.experiments_max = 200;
  const Result<ExperimentDesign> design = design_experiments(request);
  NoiseSource source(4);
  Observations observations(4);
  for (const Experiment& one : design->experiments) {
    if (one.access == AccessKind::kRead) continue;
    const std::array<double, 4> point{
        static_cast<double>(one.threads), static_cast<double>(one.request_bytes),
        static_cast<double>(one.requests), static_cast<double>(one.address_range_bytes)};
    observations.add(point, seconds(point) * source.factor(spread));
  }
  return observations;
}

double of_queue_and_pipe(std::span<const double> point) {
  return PhysicalDevice{80e-6, 32, 1e9, 3e9, 4}.seconds(
      workload_of(DeviceClass::kSolidState, point));
}

// Terms of table 1 whose times no queue has: more threads take longer.
double of_contention(std::span<const double> point) {
  return 1 + 2e-10 * point[0] * point[1] * point[2] + 1e-20 * point[1] * point[2] * point[3];
}

DeviceModel model_of(const Observations& observations) {
  const auto model = choose_device_model(kSolidStateEquation, observations, {20, 3});
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return *model;
}

TEST(DeviceModel, AQueueAndAPipeArePhysical) {
  const Observations observations = trained_on(of_queue_and_pipe, 0.05);
  const DeviceModel model = model_of(observations);
  EXPECT_EQ(model.kind, DeviceModelKind::kPhysical);
  EXPECT_LT(model.error().median_relative, 0.05);
  EXPECT_GT(model.error().r_squared, 0.9);
  EXPECT_GT(model.regression_error->median_relative, model.error().median_relative);
  EXPECT_EQ(model.error().plan.folds, 20U);
  EXPECT_THAT(model.text(), HasSubstr("in use: physical\nregression: K = 20, seed 3, 200 rows"));
}

TEST(DeviceModel, ContentionIsTheRegressions) {
  const DeviceModel model = model_of(trained_on(of_contention, 0.02));
  EXPECT_EQ(model.kind, DeviceModelKind::kRegression) << model.text();
  EXPECT_GT(model.error().r_squared, 0.9);
  EXPECT_THAT(model.text(), HasSubstr("in use: regression"));
  EXPECT_THAT(model.text(), HasSubstr("x1:x3:x4"));
}

TEST(DeviceModel, ExtrapolationIsMarkedAndNoTimeIsNegative) {
  for (const PointTime seconds : {&of_queue_and_pipe, &of_contention}) {
    const DeviceModel model = model_of(trained_on(seconds, 0.02));
    std::vector<double> point{8, 4096, 10000, 10e9};
    EXPECT_FALSE(model.predict(point).is_extrapolation);
    for (const double threads : {0.5, 65.0}) {
      point[0] = threads;
      EXPECT_TRUE(model.predict(point).is_extrapolation) << threads;
      EXPECT_GE(model.predict(point).lower, 0);
    }
  }
}

TEST(DeviceModel, RowsForOneModelOnlyMakeThatOne) {
  Observations few(4);
  const Observations many = trained_on(of_queue_and_pipe, 0.05);
  for (std::size_t row = 0; row < 10; ++row) few.add(many.point(row * 19), many.response(row * 19));
  const DeviceModel model = model_of(few);
  EXPECT_EQ(model.kind, DeviceModelKind::kPhysical);
  EXPECT_FALSE(model.regression.has_value());
}

TEST(DeviceModel, TooFewRowsForBothAreRefusedWithBothReasons) {
  Observations few(4);
  few.add(std::array{8.0, 4096.0, 1000.0, 1e9}, 1);
  const auto model = choose_device_model(kSolidStateEquation, few);
  ASSERT_FALSE(model.is_ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(model.status().message(), HasSubstr("regression: 12 terms need at least 13 rows"));
  EXPECT_THAT(model.status().message(), HasSubstr("physical: a device needs more than 5"));
}

TEST(DeviceModel, AFileOnDisksIsAWorkload) {
  // 64 stripes of 1 MB on each of 4 disks, 16 processes; x3, x4, x5, x1, x2.
  const std::array<double, 5> point{64, 1e6, 256e6, 16, 4};
  const DeviceWorkload workload = workload_of(DeviceClass::kRotating, point);
  EXPECT_EQ(workload.threads, 16);
  EXPECT_EQ(workload.devices, 4);
  EXPECT_EQ(workload.requests, 256);
  EXPECT_EQ(workload.bytes(), 256e6);
  EXPECT_EQ(formula_of(kRotatingEquation).parameters,
            (std::vector<std::string>{"x3", "x4", "x5", "x1", "x2"}));
  EXPECT_EQ(formula_of(kSolidStateEquation).parameters,
            (std::vector<std::string>{"x1", "x3", "x4", "x5"}));
}

}  // namespace
}  // namespace cairn
