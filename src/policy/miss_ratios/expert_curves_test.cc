// SPDX-License-Identifier: Apache-2.0
// Simulations of the whole stream by hand, and miniatures against them.
#include "policy/miss_ratios/expert_curves.h"

#include <gtest/gtest.h>

#include <string_view>

#include "policy/miss_ratios/all_pages.h"
#include "policy/miss_ratios/testing/page_streams.h"
#include "policy/replacement/compared_experts.h"

namespace cairn {
namespace {

using testing::loop_stream;
using testing::mean_error_at;
using testing::mixed_stream;
using testing::PageStream;
using testing::zipf_stream;

constexpr double kMiniatureErrorMax = 0.015;
// Learners need references to learn from, and a miniature of a short stream has few.
constexpr double kLearnerErrorMax = 0.025;
constexpr ExpertMaker kLruMaker{"lru", make_recency_expert<RecencyExpert::Order::kLru>};

SampledStream recording_of(const PageStream& stream, const SampledStreamLimits& limits) {
  SampledStream recording(limits);
  for (const std::uint64_t key : stream) recording.reference(key);
  return recording;
}

SampledStream whole(const PageStream& stream) {
  return recording_of(stream, SampledStreamLimits::everything());
}

TEST(ExpertCurves, OfNoReferencesAreEmpty) {
  const std::vector<std::uint64_t> capacities = {0, 1, 10};
  for (const ExpertCurve& curve : expert_curves(SampledStream(), capacities)) {
    EXPECT_TRUE(curve.curve.is_empty()) << curve.expert;
  }
}

TEST(ExpertCurves, OfOnePage) {
  const SampledStream stream = whole(PageStream(100, 3));
  const std::vector<std::uint64_t> capacities = {0, 1, 10};
  for (const auto& [expert, curve, is_rough] : expert_curves(stream, capacities)) {
    SCOPED_TRACE(expert);
    EXPECT_FALSE(is_rough) << "the stream is whole";
    EXPECT_EQ(curve.at(0), 1);
    EXPECT_DOUBLE_EQ(curve.at(1), 0.01);
    EXPECT_DOUBLE_EQ(curve.at(10), 0.01);
    EXPECT_DOUBLE_EQ(curve.compulsory_ratio(), 0.01);
  }
}

TEST(ExpertCurves, WithoutCapacitiesMissAlways) {
  const MissRatioCurve curve = min_curve(whole(loop_stream(10, 100)), {});
  EXPECT_EQ(curve.at(0), 1);
  EXPECT_EQ(curve.at(10), 1);
}

TEST(ExpertCurves, HaveEveryExpertOfTheTablesOnce) {
  const SampledStream stream = whole(loop_stream(10, 100));
  const std::vector<std::uint64_t> capacities = {5};
  const std::vector<ExpertCurve> curves = expert_curves(stream, capacities);
  EXPECT_EQ(curves.size(), kExpertMakers.size() + kComparedExpertMakers.size());
  EXPECT_EQ(std::string_view(curves.back().expert), kMinName);
}

// A loop of 10 in a cache of 5, ten times: LRU never hits. MIN keeps four of nine others.
TEST(ExpertCurves, OfAWholeStreamAreExact) {
  const SampledStream stream = whole(loop_stream(10, 100));
  const std::vector<std::uint64_t> capacities = {5, 10};
  EXPECT_DOUBLE_EQ(expert_curve(stream, kLruMaker, capacities).at(5), 1);
  EXPECT_DOUBLE_EQ(expert_curve(stream, kLruMaker, capacities).at(10), 0.1);
  EXPECT_DOUBLE_EQ(min_curve(stream, capacities).at(5), 0.6);
  EXPECT_DOUBLE_EQ(min_curve(stream, capacities).at(10), 0.1);
}

TEST(ExpertCurves, OfLruAgreeWithStackDistances) {
  const PageStream stream = mixed_stream(300, 10'000, 2);
  AllPages all;
  for (const std::uint64_t key : stream) all.reference(key);
  const std::vector<std::uint64_t> capacities = log_spaced_capacities(all.pages(), 2);
  const MissRatioCurve curve = expert_curve(whole(stream), kLruMaker, capacities);
  for (const std::uint64_t capacity : capacities)
    EXPECT_NEAR(curve.at(capacity), all.curve().at(capacity), 1e-12) << capacity;
}

TEST(ExpertCurves, NoneMissesLessThanMin) {
  const SampledStream stream = whole(mixed_stream(200, 5000, 3));
  const std::vector<std::uint64_t> capacities = log_spaced_capacities(300, 1);
  const MissRatioCurve min = min_curve(stream, capacities);
  EXPECT_TRUE(min.is_monotone());
  for (const auto& [expert, curve, is_rough] : expert_curves(stream, capacities)) {
    for (const std::uint64_t capacity : capacities)
      EXPECT_GE(curve.at(capacity), min.at(capacity)) << expert << ", " << capacity;
  }
}

double error_allowed(const ExpertCurve& curve) {
  const std::string_view expert = curve.expert;
  if (curve.is_rough) return 1;
  const bool is_learner = expert == "ws" || expert == "ws-plus" || expert == "learned";
  return is_learner ? kLearnerErrorMax : kMiniatureErrorMax;
}

void expect_miniatures_agree(const PageStream& stream) {
  const SampledStream all = whole(stream);
  const SampledStream sample = recording_of(stream, {});
  ASSERT_LT(sample.rate(), 0.6) << "the test is of a sample";
  std::vector<std::uint64_t> capacities;
  for (const std::uint64_t share : {20, 8, 3}) capacities.push_back(all.sampled_pages() / share);
  const std::vector<ExpertCurve> miniatures = expert_curves(sample, capacities);
  const std::vector<ExpertCurve> exact = expert_curves(all, capacities);
  ASSERT_EQ(miniatures.size(), exact.size());
  for (std::size_t at = 0; at < exact.size(); ++at) {
    EXPECT_STREQ(miniatures[at].expert, exact[at].expert);
    const double error = mean_error_at(miniatures[at].curve, exact[at].curve, capacities);
    EXPECT_LT(error, error_allowed(miniatures[at])) << exact[at].expert;
  }
}

TEST(ExpertCurves, MiniaturesAgreeOnAZipfStream) {
  expect_miniatures_agree(zipf_stream(60'000, 0.8, 45'000, 1));
}

TEST(ExpertCurves, MiniaturesAgreeOnALoop) { expect_miniatures_agree(loop_stream(18'000, 40'000)); }

TEST(ExpertCurves, MiniaturesAgreeOnAMixture) {
  expect_miniatures_agree(mixed_stream(15'000, 40'000, 4));
}

}  // namespace
}  // namespace cairn
