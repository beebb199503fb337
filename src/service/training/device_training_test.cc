// SPDX-License-Identifier: Apache-2.0
#include "service/training/device_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random_source.h"
#include "base/testing/temporary_folder.h"

namespace cairn::training {
namespace {

PhysicalDevice device_of_test() {
  PhysicalDevice device;
  device.latency_seconds = 80e-6;
  device.queue_depth = 16;
  device.thread_bandwidth = 5e8;
  device.peak_bandwidth = 2e9;
  return device;
}

// A device that is as fast as a formula, with little noise, and busy when the script says so. Its
// clock is that of the experiments.
class ScriptedBench final : public ExperimentBench {
 public:
  Result<ExperimentTime> run(const Experiment& experiment, std::int64_t /*time_max_ns*/) override {
    runs.push_back(experiment);
    DeviceWorkload workload;
    workload.threads = static_cast<double>(experiment.threads);
    workload.requests = static_cast<double>(experiment.requests);
    workload.request_bytes = static_cast<double>(experiment.request_bytes);
    double seconds = device_of_test().seconds(workload) * (1 + 0.02 * noise_.fraction());
    if (runs.size() > busy_from && runs.size() <= busy_until) {
      seconds *= runs.size() % 2 == 0 ? 3 : 1;
    }
    clock_ns += static_cast<std::int64_t>(seconds * 1e9);
    return ExperimentTime{seconds, experiment.requests};
  }

  std::vector<Experiment> runs;
  std::size_t busy_from = 0;
  std::size_t busy_until = 0;
  std::int64_t clock_ns = 0;

 private:
  RandomSource noise_{3};
};

class DeviceTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plan_.budget_seconds = 120;
    plan_.space_bytes = std::uint64_t{1} << 30;
    plan_.reads = device_of_test();
    plan_.writes = device_of_test();
    auto design = design_of(plan_);
    ASSERT_TRUE(design) << design.status().message();
    design_ = std::move(design.value());
    options_.now_ns = [this] { return bench_.clock_ns; };
    options_.progress = [this](const TrainingProgress& news) {
      if (news.spread > 0) told_.push_back(news);
    };
  }

  Journal open() {
    auto journal = Journal::open(folder_.path() + "/training.jsonl", {});
    EXPECT_TRUE(journal) << journal.status().message();
    if (!journal->plan()) {
      EXPECT_TRUE(journal->begin(plan_));
    }
    return std::move(journal.value());
  }

  TrainingOutcome walk(Journal* journal) {
    const auto outcome = train(journal, design_, &bench_, options_);
    EXPECT_TRUE(outcome) << outcome.status().message();
    return outcome ? *outcome : TrainingOutcome{};
  }

  ::cairn::testing::TemporaryFolder folder_{"training"};
  TrainingPlan plan_;
  ExperimentDesign design_;
  ScriptedBench bench_;
  TrainingOptions options_;
  std::vector<TrainingProgress> told_;
};

TEST_F(DeviceTrainingTest, ModelsOfASyntheticDevice) {
  Journal journal = open();
  const TrainingOutcome outcome = walk(&journal);
  EXPECT_EQ(outcome.end, TrainingEnd::kComplete);
  EXPECT_EQ(outcome.finished, design_.experiments.size());
  EXPECT_EQ(outcome.repeated, 0U);
  EXPECT_EQ(bench_.runs.size(), kRepetitions * design_.experiments.size());
  const std::vector<AccessModel> models = fit_models(journal.finished());
  ASSERT_EQ(models.size(), 2U);
  for (const AccessModel& model : models) {
    ASSERT_TRUE(model.model) << model.problem;
    EXPECT_GT(model.model->error().r_squared, 0.9);
    EXPECT_LT(model.model->error().median_relative, 0.05);
  }
}

TEST_F(DeviceTrainingTest, SpreadIsNoticedAndMeasuredAgain) {
  bench_.busy_until = 2;
  Journal journal = open();
  const TrainingOutcome outcome = walk(&journal);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NEAR(told_[0].spread, 2, 0.1);
  EXPECT_EQ(outcome.repeated, 1U);
  EXPECT_EQ(outcome.busy, 0U);
  EXPECT_EQ(journal.finished()[0].rounds, 2U);
  EXPECT_LT(journal.finished()[0].spread, kSpreadMax);
  const Experiment& first = journal.finished()[0].experiment;
  const double undisturbed =
      device_of_test().seconds({.threads = static_cast<double>(first.threads),
                                .requests = static_cast<double>(first.requests),
                                .request_bytes = static_cast<double>(first.request_bytes)});
  EXPECT_NEAR(journal.finished()[0].seconds, undisturbed, 0.03 * undisturbed)
      << "the repetition that was disturbed does not count";
}

TEST_F(DeviceTrainingTest, BusyThroughoutIsMarkedAfterThreeRounds) {
  bench_.busy_until = 3 * kRepetitions;
  Journal journal = open();
  const TrainingOutcome outcome = walk(&journal);
  EXPECT_EQ(told_.size(), kRoundsMax);
  EXPECT_EQ(outcome.busy, 1U);
  EXPECT_TRUE(journal.finished()[0].is_busy);
  EXPECT_EQ(journal.finished()[0].rounds, kRoundsMax);
  EXPECT_EQ(bench_.runs.size(), kRepetitions * (design_.experiments.size() + kRoundsMax - 1));
}

TEST_F(DeviceTrainingTest, GoesOnWhereItWas) {
  options_.seconds = 5;
  std::size_t before = 0;
  {
    Journal journal = open();
    const TrainingOutcome outcome = walk(&journal);
    EXPECT_EQ(outcome.end, TrainingEnd::kTime);
    before = outcome.finished;
    EXPECT_GT(before, 0U);
    EXPECT_LT(before, design_.experiments.size());
  }
  bench_.runs.clear();
  options_.seconds = 600;
  Journal journal = open();
  EXPECT_EQ(journal.finished().size(), before);
  EXPECT_EQ(walk(&journal).end, TrainingEnd::kComplete);
  EXPECT_EQ(bench_.runs.size(), kRepetitions * (design_.experiments.size() - before));
  EXPECT_EQ(bench_.runs.front(), design_.experiments[before]);
}

TEST_F(DeviceTrainingTest, StopsWhenCancelled) {
  std::atomic<bool> cancelled{false};
  options_.cancelled = &cancelled;
  options_.progress = [&](const TrainingProgress& news) { cancelled = news.finished == 4; };
  Journal journal = open();
  const TrainingOutcome outcome = walk(&journal);
  EXPECT_EQ(outcome.end, TrainingEnd::kCancelled);
  EXPECT_EQ(outcome.finished, 4U);
}

TEST_F(DeviceTrainingTest, OrderIsShuffledAndTheSameEachTime) {
  const auto again = design_of(plan_);
  EXPECT_EQ(again->experiments, design_.experiments);
  EXPECT_FALSE(std::ranges::is_sorted(design_.experiments, {}, &Experiment::expected_seconds));
}

TEST_F(DeviceTrainingTest, TooFewExperimentsSayWhy) {
  const std::vector<AccessModel> models = fit_models({});
  EXPECT_FALSE(models[0].model);
  EXPECT_EQ(models[0].problem, "no experiment is finished");
}

}  // namespace
}  // namespace cairn::training
