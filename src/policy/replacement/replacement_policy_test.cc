// SPDX-License-Identifier: Apache-2.0
// The conformance suite of replacement policies, run against every member of the table, and the
// rules of each.
#include "policy/replacement/replacement_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "policy/replacement/policies.h"

namespace cairn {
namespace {

BlockView block(std::uint32_t bucket, std::uint32_t recency_ms, bool dirty = false) {
  return BlockView{static_cast<BucketIndex>(bucket), recency_ms, 1, kBlockBytes, dirty};
}

std::vector<std::uint32_t> sorted_buckets(const std::vector<BlockView>& blocks) {
  std::vector<std::uint32_t> buckets;
  for (const BlockView& view : blocks) buckets.push_back(raw(view.bucket));
  std::sort(buckets.begin(), buckets.end());
  return buckets;
}

std::vector<BlockView> random_blocks(std::mt19937& random, std::size_t count) {
  std::vector<BlockView> blocks;
  for (std::uint32_t index = 0; index < count; ++index) {
    BlockView view = block(index + 1, random(), random() % 2 == 0);
    view.bytes = kPageBytes << (2 * (random() % 3));
    blocks.push_back(view);
  }
  return blocks;
}

class ReplacementConformance : public testing::TestWithParam<const ReplacementPolicy*> {};

TEST_P(ReplacementConformance, HasAName) { EXPECT_FALSE(std::string(GetParam()->name()).empty()); }

TEST_P(ReplacementConformance, ChoosesNothingFromNothing) {
  EXPECT_EQ(GetParam()->choose({}, ReplacementRequest{kBlockBytes, 0}), 0u);
}

TEST_P(ReplacementConformance, ChoosesNothingWhenNothingIsWanted) {
  std::vector<BlockView> blocks = {block(1, 5), block(2, 6)};
  EXPECT_EQ(GetParam()->choose(blocks, ReplacementRequest{0, 10}), 0u);
}

TEST_P(ReplacementConformance, OnlyReordersAndReachesWhatIsWanted) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<BlockView> blocks = random_blocks(random, random() % 40);
    const std::vector<std::uint32_t> before = sorted_buckets(blocks);
    std::uint64_t all = 0;
    for (const BlockView& view : blocks) all += view.bytes;
    const ReplacementRequest request{random() % (all + kBlockBytes),
                                     static_cast<std::uint32_t>(random())};
    const std::size_t count = GetParam()->choose(blocks, request);
    ASSERT_LE(count, blocks.size());
    EXPECT_EQ(sorted_buckets(blocks), before);
    std::uint64_t chosen = 0;
    for (std::size_t at = 0; at < count; ++at) chosen += blocks[at].bytes;
    EXPECT_GE(chosen, std::min(all, request.bytes_wanted));
  }
}

TEST_P(ReplacementConformance, SameInputSameChoice) {
  std::mt19937 random(13);
  const std::vector<BlockView> blocks = random_blocks(random, 30);
  std::vector<BlockView> first = blocks;
  std::vector<BlockView> second = blocks;
  const ReplacementRequest request{10 * kBlockBytes, 77};
  ASSERT_EQ(GetParam()->choose(first, request), GetParam()->choose(second, request));
  for (std::size_t at = 0; at < first.size(); ++at) EXPECT_EQ(first[at].bucket, second[at].bucket);
}

INSTANTIATE_TEST_SUITE_P(All, ReplacementConformance, testing::ValuesIn(replacement_policies()),
                         [](const auto& member) {
                           std::string name = member.param->name();
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

TEST(OldestFirst, TakesTheLongestUnused) {
  std::vector<BlockView> blocks = {block(1, 300), block(2, 100), block(3, 200)};
  ASSERT_EQ(OldestFirst().choose(blocks, ReplacementRequest{2 * kBlockBytes, 400}), 2u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
  EXPECT_EQ(raw(blocks[1].bucket), 3u);
}

TEST(OldestFirst, SurvivesTheWrapOfTheClock) {
  std::vector<BlockView> blocks = {block(1, 5), block(2, UINT32_MAX - 5)};
  ASSERT_EQ(OldestFirst().choose(blocks, ReplacementRequest{kBlockBytes, 10}), 1u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
}

TEST(OldestFirst, KeepsWhatIsUsedWhileItChooses) {
  std::vector<BlockView> blocks = {block(1, 404), block(2, 399)};
  ASSERT_EQ(OldestFirst().choose(blocks, ReplacementRequest{kBlockBytes, 400}), 1u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
}

TEST(OldestFirst, TakesFilesOfLeastPriorityFirst) {
  std::vector<BlockView> blocks = {block(1, 100), block(2, 300), block(3, 200)};
  blocks[1].priority = 1;
  blocks[0].priority = 7;
  ASSERT_EQ(OldestFirst().choose(blocks, ReplacementRequest{2 * kBlockBytes, 400}), 2u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
  EXPECT_EQ(raw(blocks[1].bucket), 3u);
}

TEST(OldestFirst, PrefersCleanAmongEquals) {
  std::vector<BlockView> blocks = {block(1, 5, true), block(2, 5, false)};
  ASSERT_EQ(OldestFirst().choose(blocks, ReplacementRequest{kBlockBytes, 10}), 1u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
}

BlockView block_placed(std::uint32_t bucket, std::uint32_t placed_ms, std::uint32_t recency_ms) {
  BlockView view = block(bucket, recency_ms);
  view.placed_ms = placed_ms;
  return view;
}

TEST(FirstIn, TakesWhatCameFirstHoweverOftenItIsUsed) {
  std::vector<BlockView> blocks = {block_placed(1, 300, 310), block_placed(2, 100, 399),
                                   block_placed(3, 200, 200)};
  ASSERT_EQ(FirstIn().choose(blocks, ReplacementRequest{2 * kBlockBytes, 400}), 2u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
  EXPECT_EQ(raw(blocks[1].bucket), 3u);
}

TEST(FirstIn, SurvivesTheWrapOfTheClock) {
  std::vector<BlockView> blocks = {block_placed(1, 5, 5), block_placed(2, UINT32_MAX - 5, 7)};
  ASSERT_EQ(FirstIn().choose(blocks, ReplacementRequest{kBlockBytes, 10}), 1u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
}

TEST(FirstIn, TakesFilesOfLeastPriorityFirst) {
  std::vector<BlockView> blocks = {block_placed(1, 100, 100), block_placed(2, 300, 300)};
  blocks[1].priority = 1;
  ASSERT_EQ(FirstIn().choose(blocks, ReplacementRequest{kBlockBytes, 400}), 1u);
  EXPECT_EQ(raw(blocks[0].bucket), 2u);
}

}  // namespace
}  // namespace cairn
