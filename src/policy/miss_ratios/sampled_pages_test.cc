// SPDX-License-Identifier: Apache-2.0
// The sampled curve against the exact one, on streams and seeds that a failure prints.
#include "policy/miss_ratios/sampled_pages.h"

#include <gtest/gtest.h>

#include "policy/miss_ratios/all_pages.h"
#include "policy/miss_ratios/testing/page_streams.h"

namespace cairn {
namespace {

using testing::loop_stream;
using testing::mean_error;
using testing::mixed_stream;
using testing::PageStream;
using testing::zipf_stream;

constexpr std::size_t kMemoryMax = std::size_t{64} << 20;
constexpr double kErrorMax = 0.01;

template <typename Pages>
void refer_to_all(Pages& pages, const PageStream& stream) {
  for (const std::uint64_t key : stream) pages.reference(key);
}

void expect_agreement(const PageStream& stream) {
  AllPages all;
  refer_to_all(all, stream);
  for (const std::uint64_t seed : {0, 1, 2}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SampledPages sampled(SampledPages::kPagesMaxDefault, seed);
    refer_to_all(sampled, stream);
    const MissRatioCurve curve = sampled.curve();
    EXPECT_LT(sampled.rate(), 0.5) << "the test is of a sample";
    EXPECT_LT(mean_error(curve, all.curve(), all.pages()), kErrorMax);
    EXPECT_TRUE(curve.is_monotone());
    EXPECT_NEAR(curve.compulsory_ratio(), all.curve().compulsory_ratio(), 0.02);
    const auto pages = static_cast<double>(all.pages());
    EXPECT_NEAR(sampled.pages() / pages, 1, 0.05);
    EXPECT_NEAR(sampled.hot_set_pages() / pages, all.hot_set_pages() / pages, 0.03);
    EXPECT_LT(sampled.memory_bytes(), kMemoryMax);
  }
}

TEST(SampledPages, AgreeWithAllOfAZipfStream) {
  expect_agreement(zipf_stream(200'000, 0.8, 400'000, 1));
}

TEST(SampledPages, AgreeWithAllOfAZipfStreamOfFewHotPages) {
  expect_agreement(zipf_stream(200'000, 1.1, 600'000, 2));
}

TEST(SampledPages, AgreeWithAllOfALoop) { expect_agreement(loop_stream(50'000, 400'000)); }

TEST(SampledPages, AgreeWithAllOfAMixture) { expect_agreement(mixed_stream(60'000, 600'000, 3)); }

TEST(SampledPages, OfNoReferences) {
  const SampledPages sampled;
  EXPECT_TRUE(sampled.curve().is_empty());
  EXPECT_EQ(sampled.pages(), 0);
  EXPECT_EQ(sampled.hot_set_pages(), 0);
}

TEST(SampledPages, OfOnePage) {
  SampledPages sampled(1);
  refer_to_all(sampled, PageStream(1000, 7));
  EXPECT_EQ(sampled.curve().at(0), 1);
  EXPECT_DOUBLE_EQ(sampled.curve().at(1), 0.001);
  EXPECT_EQ(sampled.rate(), 1);
}

// As long as nothing has left the sample, only the buckets are coarser.
TEST(SampledPages, AreAllPagesOfASmallStream) {
  const PageStream stream = mixed_stream(200, 5000, 4);
  AllPages all;
  SampledPages sampled;
  refer_to_all(all, stream);
  refer_to_all(sampled, stream);
  ASSERT_EQ(sampled.rate(), 1);
  EXPECT_EQ(sampled.pages(), static_cast<double>(all.pages()));
  EXPECT_EQ(sampled.hot_set_pages(), all.hot_set_pages());
  for (std::uint64_t capacity = 1; capacity < 256; ++capacity) {
    ASSERT_NEAR(sampled.curve().at(capacity), all.curve().at(capacity), 1e-12) << capacity;
  }
  EXPECT_LT(mean_error(sampled.curve(), all.curve(), all.pages()), 0.001);
}

// 384 and 385 are in one bucket of distances.
TEST(SampledPages, ACacheOfAllPagesHasEveryHit) {
  SampledPages sampled;
  refer_to_all(sampled, loop_stream(384, 3 * 384));
  EXPECT_DOUBLE_EQ(sampled.curve().at(384), 1.0 / 3);
  EXPECT_DOUBLE_EQ(sampled.curve().at(383), 1);
  ASSERT_TRUE(sampled.curve().knee());
  EXPECT_EQ(sampled.curve().knee()->capacity, 384U);
}

TEST(SampledPages, KeepToTheirBound) {
  SampledPages sampled(100);
  const PageStream stream = loop_stream(400'000, 400'000);
  refer_to_all(sampled, stream);
  EXPECT_EQ(sampled.sampled_pages(), 100U);
  EXPECT_LT(sampled.rate(), 0.001);
  EXPECT_GT(sampled.rate(), 0.0001);
  EXPECT_LT(sampled.memory_bytes(), std::size_t{128} << 10);
  EXPECT_EQ(sampled.references(), 400'000U);
}

TEST(SampledPages, SamplesOfOneSeedAgree) {
  const PageStream stream = zipf_stream(5000, 0.9, 20'000, 5);
  SampledPages one(200, 9);
  SampledPages other(200, 9);
  refer_to_all(one, stream);
  refer_to_all(other, stream);
  EXPECT_EQ(mean_error(one.curve(), other.curve(), 5000), 0);
}

TEST(SampledPages, TouchesAreInTheCacheAndInNoCount) {
  SampledPages reads;
  for (std::uint64_t page = 0; page < 4; ++page) reads.touch(page);
  for (std::uint64_t page = 0; page < 8; ++page) reads.reference(page);
  EXPECT_EQ(reads.references(), 8U);
  // The last of four pages that were touched are hits from a capacity of four on, the others first.
  EXPECT_DOUBLE_EQ(reads.curve().at(3), 1);
  EXPECT_DOUBLE_EQ(reads.curve().at(4), 0.5);
  EXPECT_DOUBLE_EQ(reads.curve().compulsory_ratio(), 0.5);
}

}  // namespace
}  // namespace cairn
