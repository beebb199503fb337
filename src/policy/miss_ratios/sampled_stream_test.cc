// SPDX-License-Identifier: Apache-2.0
// The references of a sample, in their order, against filtering the stream afterwards.
#include "policy/miss_ratios/sampled_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "policy/miss_ratios/sampled_pages.h"
#include "policy/miss_ratios/testing/page_streams.h"

namespace cairn {
namespace {

using testing::loop_stream;
using testing::mixed_stream;
using testing::PageStream;
using testing::zipf_stream;

SampledStream recorded(const PageStream& stream, const SampledStreamLimits& limits) {
  SampledStream recording(limits);
  for (const std::uint64_t key : stream) recording.reference(key);
  return recording;
}

// Two sequences are equal but for the names of their pages.
template <typename Names>
bool is_same_order(const std::vector<PageId>& pages, const std::vector<Names>& names) {
  if (pages.size() != names.size()) return false;
  std::map<Names, PageId> page_of;
  std::map<PageId, Names> name_of;
  for (std::size_t at = 0; at < pages.size(); ++at) {
    if (page_of.try_emplace(names[at], pages[at]).first->second != pages[at]) return false;
    if (name_of.try_emplace(pages[at], names[at]).first->second != names[at]) return false;
  }
  return true;
}

TEST(SampledStream, WithoutLimitsIsTheStream) {
  const PageStream stream = mixed_stream(300, 20'000, 1);
  const SampledStream recording = recorded(stream, SampledStreamLimits::everything());
  EXPECT_EQ(recording.rate(), 1);
  EXPECT_EQ(recording.references(), 20'000U);
  EXPECT_TRUE(is_same_order(recording.numbered_pages(), stream));
}

TEST(SampledStream, HasEveryReferenceToItsPages) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PageStream stream = mixed_stream(5000, 60'000, seed);
    const SampledStreamLimits limits{50 * seed, 1 << 20, seed};
    const SampledStream recording = recorded(stream, limits);
    EXPECT_EQ(recording.sampled_pages(), limits.pages_max);
    const SpatialSample hashes(1, seed);
    // A little less than the threshold, for the rounding of the rate.
    const double highest = recording.rate() * std::ldexp(1 - 1e-14, 64);
    std::vector<std::uint64_t> kept;
    for (const std::uint64_t key : stream) {
      if (static_cast<double>(hashes.hash_of(key)) < highest) kept.push_back(key);
    }
    EXPECT_TRUE(is_same_order(recording.numbered_pages(), kept));
    for (const PageId page : recording.numbered_pages()) ASSERT_LT(raw(page), limits.pages_max);
  }
}

TEST(SampledStream, IsTheSampleOfSampledPages) {
  SampledPages sampled(100, 6);
  const PageStream stream = zipf_stream(5000, 0.8, 30'000, 2);
  for (const std::uint64_t key : stream) sampled.reference(key);
  const SampledStream recording = recorded(stream, {100, 1 << 20, 6});
  EXPECT_EQ(recording.rate(), sampled.rate());
  EXPECT_EQ(recording.sampled_pages(), sampled.sampled_pages());
}

TEST(SampledStream, BecomesSmallerForManyReferences) {
  const SampledStream recording = recorded(loop_stream(1000, 100'000), {400, 20'000, 0});
  EXPECT_FALSE(recording.is_full());
  EXPECT_LE(recording.sampled_references(), 20'000U);
  EXPECT_GE(recording.sampled_pages(), 100U);
  EXPECT_LT(recording.sampled_pages(), 250U);
  EXPECT_EQ(recording.references(), 100'000U);
  EXPECT_EQ(recording.numbered_pages().size(), recording.sampled_references());
  EXPECT_LT(recording.memory_bytes(), 20'000U * 16 + 400 * 60);
}

TEST(SampledStream, EndsWhenAQuarterOfThePagesIsTooMuch) {
  const SampledStream recording = recorded(loop_stream(50, 100'000), {100, 1000, 0});
  EXPECT_TRUE(recording.is_full());
  EXPECT_EQ(recording.sampled_references(), 1000U);
  EXPECT_LT(recording.references(), 100'000U);
  const double expected = static_cast<double>(recording.references()) * recording.rate();
  EXPECT_NEAR(expected / 1000, 1, 0.4) << "what was recorded is a sample of what was counted";
}

TEST(SampledStream, OfNoReferences) {
  const SampledStream recording;
  EXPECT_TRUE(recording.numbered_pages().empty());
  EXPECT_EQ(recording.references(), 0U);
}

}  // namespace
}  // namespace cairn
