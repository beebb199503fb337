// SPDX-License-Identifier: Apache-2.0
// What accesses are counted as, against counts made by hand.
#include "policy/advice/access_summary.h"

#include <gtest/gtest.h>

#include "policy/advice/testing/advice_scene.h"

namespace cairn::advice {
namespace {

TEST(AccessSummaryTest, PiecesOfABlockAreOneUseAndTheNextBlockIsSequential) {
  Scene scene;
  // The program reads block 0 in two pieces, block 1, and one far away; the trace has the first
  // piece.
  scene.access(0, false, 0, 4096).access(1, false, 0.1).access(100, false, 0.2, 4096);
  const AccessSummary summary = scene.workload().accesses;
  EXPECT_EQ(summary.reads.requests, 3);
  EXPECT_EQ(summary.reads.sequential_uses, 1);
  EXPECT_EQ(summary.reads.random_uses, 2);
  EXPECT_EQ(summary.reads.sequential_bytes, kBlock);
  EXPECT_EQ(summary.reads.random_bytes, kBlock + 4096) << "block 0 was read to its end";
  EXPECT_DOUBLE_EQ(summary.seconds, 0.2);
  EXPECT_EQ(summary.requests_by_size[1], 2) << "of 4 KiB";
  EXPECT_EQ(summary.requests_by_size[2], 1) << "of 64 KiB";
}

TEST(AccessSummaryTest, OnlyARequestThatGoesOnWhereTheLastOneEndedIsForeseen) {
  constexpr std::uint32_t kLarge = 8 * 65536;
  Scene scene;
  // Two requests in order, and two elsewhere.
  scene.access(0, false, 0, kLarge).access(8, false, 0, kLarge);
  scene.access(100, false, 0, kLarge).access(50, false, 0, kLarge);
  const UseCounts reads = scene.workload().accesses.reads;
  EXPECT_EQ(reads.sequential_uses, 7 + 8 + 7 + 7) << "a device reads each request in order";
  EXPECT_EQ(reads.foreseen_uses, 8);
  EXPECT_EQ(reads.foreseen_bytes, kLarge);
  EXPECT_EQ(reads.split_requests, 3);
  EXPECT_DOUBLE_EQ(reads.foreseen_share(), 0.25);
}

TEST(AccessSummaryTest, ARequestThatEndsWithinABlockIsForeseenToGoOnThere) {
  constexpr std::uint32_t kLength = 100'000;
  SummaryBuilder builder;
  for (std::uint64_t number = 0; number < 10; ++number)
    builder.add({.offset = number * kLength, .length = kLength}, [](std::uint64_t) {});
  const UseCounts reads = builder.summary().reads;
  EXPECT_EQ(reads.foreseen_uses, reads.uses() - 2) << "all but the blocks of the first request";
  EXPECT_EQ(reads.split_requests, 1);
}

TEST(AccessSummaryTest, WhatIsReadAgainWithinAUseIsARepeat) {
  Scene scene;
  for (int pass = 0; pass < 3; ++pass) scene.access(0, false, 0, 8192);
  EXPECT_EQ(scene.workload().accesses.reads.uses(), 1);
  EXPECT_EQ(scene.workload().accesses.reads.repeats, 2);
  // Lines of a text, one after another, are not.
  SummaryBuilder lines;
  Access line{.length = 100};
  for (; line.offset < 70'000; line.offset += line.length) lines.add(line, [](std::uint64_t) {});
  EXPECT_EQ(lines.summary().reads.repeats, 0);
}

TEST(AccessSummaryTest, ASmallFileHasNoWholeBlock) {
  Scene scene;
  scene.access(0, false, 0, 4096, 0).access(0, false, 0, 8192, 1);
  const AccessSummary summary = scene.workload().accesses;
  EXPECT_EQ(summary.files, 2U);
  EXPECT_EQ(summary.reads.random_block_bytes, 4096 + 8192);
}

TEST(AccessSummaryTest, WritesKeepTheirTimeHoweverLongTheRun) {
  SummaryBuilder builder;
  for (unsigned hour = 0; hour < 10; ++hour)
    builder.add({.time_ns = hour * 3'600'000'000'000ULL, .length = 1000, .is_write = true},
                [](std::uint64_t) {});
  const AccessSummary summary = builder.summary();
  double sum = 0;
  for (const double bytes : summary.written.bytes) sum += bytes;
  EXPECT_EQ(sum, 10'000);
  EXPECT_GE(summary.written.part_seconds * WriteTimes::kParts, 9 * 3600);
  EXPECT_EQ(summary.written.bytes.front(), 1000);
}

TEST(AccessSummaryTest, OneProcessWithManyFilesWaitsForOneAtATime) {
  SummaryBuilder builder;
  for (std::uint32_t at = 0; at < 128; ++at)
    builder.add({.time_ns = at, .length = 4096, .file = at % 16, .stream = at % 16},
                [](std::uint64_t) {});
  EXPECT_DOUBLE_EQ(builder.summary().concurrency, 1);
}

TEST(AccessSummaryTest, BlocksBehindThoseOfOthersAdjoinThem) {
  SummaryBuilder builder;
  const auto nothing = [](std::uint64_t) {};
  for (std::uint64_t block = 0; block < 64; ++block)
    builder.add({.time_ns = block,
                 .offset = block * kBlockBytes,
                 .length = 4096,
                 .stream = block % 4,
                 .process = static_cast<std::uint32_t>(block % 4)},
                nothing);
  builder.add({.time_ns = 64, .offset = 1000 * kBlockBytes, .length = 4096}, nothing);
  const UseCounts reads = builder.summary().reads;
  EXPECT_EQ(reads.random_uses, 65);
  EXPECT_EQ(reads.adjoining_uses, 63) << "all but the first, and the one far away";
}

TEST(AccessSummaryTest, OfALongPauseATenthOfASecondIsShort) {
  Scene scene;
  scene.access(0, false, 0).access(2, false, 0.05).access(4, false, 1.05);
  EXPECT_NEAR(scene.workload().accesses.long_pause_seconds, 0.9, 1e-6);
}

}  // namespace
}  // namespace cairn::advice
