// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/experiment_design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace cairn {
namespace {

using ::testing::HasSubstr;

DesignRequest large_disk(double budget_seconds) {
  DesignRequest request;
  request.device_bytes = 2'000'000'000'000;
  request.budget_seconds = budget_seconds;
  return request;
}

ExperimentDesign designed(const DesignRequest& request) {
  const Result<ExperimentDesign> design = design_experiments(request);
  EXPECT_TRUE(design.is_ok()) << design.status().message();
  return design.is_ok() ? *design : ExperimentDesign{};
}

using ExperimentNumber = std::uint64_t Experiment::*;

// How often each value occurs in experiments of one access.
std::map<std::uint64_t, std::size_t> counts_of(const ExperimentDesign& design, AccessKind access,
                                               ExperimentNumber number) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const Experiment& one : design.experiments) {
    if (one.access == access) ++counts[one.*number];
  }
  return counts;
}

TEST(ExperimentDesign, ADayCoversThePapersRangesEvenly) {
  const ExperimentDesign design = designed(large_disk(86400));
  ASSERT_EQ(design.experiments.size(), 800U);
  for (const AccessKind access : {AccessKind::kRead, AccessKind::kWrite}) {
    for (const ExperimentNumber number :
         {&Experiment::threads, &Experiment::request_bytes, &Experiment::requests,
          &Experiment::address_range_bytes}) {
      const auto counts = counts_of(design, access, number);
      for (const auto& [value, count] : counts) {
        EXPECT_NEAR(count, 400.0 / static_cast<double>(counts.size()), 1) << value;
      }
    }
    const auto sizes = counts_of(design, access, &Experiment::request_bytes);
    EXPECT_EQ(sizes.begin()->first, 512U);
    EXPECT_EQ(sizes.rbegin()->first, 262144U);
    EXPECT_EQ(counts_of(design, access, &Experiment::threads).rbegin()->first, 64U);
    const auto requests = counts_of(design, access, &Experiment::requests);
    EXPECT_EQ(requests.begin()->first, 1000U);
    EXPECT_EQ(requests.rbegin()->first, 4'000'000U);
    const auto ranges = counts_of(design, access, &Experiment::address_range_bytes);
    EXPECT_NEAR(static_cast<double>(ranges.begin()->first), 500e6, 4096);
    EXPECT_NEAR(static_cast<double>(ranges.rbegin()->first), 500e9, 4096);
  }
}

TEST(ExperimentDesign, EveryBudgetIsKept) {
  for (const double budget : {60.0, 300.0, 600.0, 3600.0, 86400.0}) {
    const ExperimentDesign design = designed(large_disk(budget));
    EXPECT_LE(design.expected_seconds, budget);
    // The paper's whole design takes less than a day here.
    if (budget < 86400) {
      EXPECT_GT(design.expected_seconds, 0.3 * budget);
    }
    EXPECT_LE(design.preparation_seconds, 0.25 * budget * 1.0001);
    EXPECT_GE(design.experiments.size(), 2 * ExperimentDesign::kExperimentsMin);
    double sum = design.preparation_seconds;
    for (const Experiment& one : design.experiments) sum += one.expected_seconds;
    EXPECT_NEAR(sum, design.expected_seconds, 1e-6 * sum);
  }
}

TEST(ExperimentDesign, ASmallDeviceHasThePapersRatioOfRanges) {
  DesignRequest request = large_disk(3600);
  request.device_bytes = 50'000'000'000;
  const DesignLevels levels = designed(request).levels;
  EXPECT_NEAR(static_cast<double>(levels.address_range_max), 50e9, 4096);
  EXPECT_NEAR(static_cast<double>(levels.address_range_min), 50e6, 4096);
}

TEST(ExperimentDesign, ASlowDiskGetsFewerAndSmallerExperiments) {
  DesignRequest request = large_disk(1800);
  request.reads = request.writes = PhysicalDevice{8e-3, 2, 150e6, 180e6, 4};
  const ExperimentDesign design = designed(request);
  EXPECT_LE(design.expected_seconds, 1800);
  EXPECT_LT(design.experiments.size(), 800U);
  EXPECT_GE(design.levels.requests_max, design.levels.requests_min * 16);
  EXPECT_GE(design.levels.requests_min, 64U) << "a request per thread";
}

TEST(ExperimentDesign, CheapOnesComeFirst) {
  const ExperimentDesign design = designed(large_disk(600));
  EXPECT_TRUE(std::is_sorted(design.experiments.begin(), design.experiments.end(),
                             [](const Experiment& a, const Experiment& b) {
                               return a.expected_seconds < b.expected_seconds;
                             }));
}

TEST(ExperimentDesign, TheSameRequestGivesTheSameList) {
  DesignRequest request = large_disk(600);
  const ExperimentDesign design = designed(request);
  EXPECT_EQ(design.experiments, designed(request).experiments);
  request.seed = 2;
  EXPECT_NE(design.experiments, designed(request).experiments);
}

TEST(ExperimentDesign, MoreThreadsThanAllowedAreLeftOut) {
  DesignRequest request = large_disk(600);
  request.threads_max = 10;
  const ExperimentDesign design = designed(request);
  EXPECT_EQ(counts_of(design, AccessKind::kRead, &Experiment::threads).rbegin()->first, 8U);
}

TEST(ExperimentDesign, ImpossibleRequestsAreRefused) {
  DesignRequest request = large_disk(600);
  request.device_bytes = 1'000'000;
  EXPECT_THAT(design_experiments(request).status().message(), HasSubstr("has room for 999424"));
  EXPECT_THAT(design_experiments(large_disk(2)).status().message(),
              HasSubstr("the smallest design takes"));
  request = large_disk(600);
  request.threads_max = 0;
  EXPECT_THAT(design_experiments(request).status().message(), HasSubstr("threads"));
  request = large_disk(600);
  request.writes.peak_bandwidth = 0;
  EXPECT_THAT(design_experiments(request).status().message(), HasSubstr("of the device"));
  request = large_disk(-1);
  EXPECT_EQ(design_experiments(request).status().code(), StatusCode::kInvalid);
  request = large_disk(600);
  request.levels.requests_max = 10;
  EXPECT_EQ(design_experiments(request).status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace cairn
