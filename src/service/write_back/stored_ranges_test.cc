// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/stored_ranges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

StoredRanges of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  StoredRanges all;
  for (const auto& [begin, end] : ranges) all.add(begin, end);
  return all;
}

TEST(StoredRangesTest, RangesThatTouchAreOne) {
  EXPECT_EQ(of({{0, 10}, {20, 30}, {10, 20}}), of({{0, 30}}));
  EXPECT_EQ(of({{5, 8}, {0, 100}, {90, 95}}), of({{0, 100}}));
  EXPECT_EQ(of({{3, 3}}), StoredRanges());
}

TEST(StoredRangesTest, WhatIsSubtractedIsCutOut) {
  StoredRanges all = of({{0, 10}, {20, 30}, {40, 50}});
  all.subtract(of({{5, 25}, {40, 60}}));
  EXPECT_EQ(all, of({{0, 5}, {25, 30}}));
  all.subtract(of({{26, 27}}));
  EXPECT_EQ(all, of({{0, 5}, {25, 26}, {27, 30}}));
  all.subtract(of({{0, 100}}));
  EXPECT_TRUE(all.is_empty());
}

TEST(StoredRangesTest, TooManyRangesCountAsOneAndNothingIsSubtractedForIt) {
  StoredRanges many;
  for (std::uint64_t at = 0; at <= StoredRanges::kRangesMax; ++at) many.add(at * 10, at * 10 + 1);
  EXPECT_FALSE(many.is_exact());
  StoredRanges lost = of({{3, 5}});
  lost.subtract(many);
  EXPECT_EQ(lost, of({{3, 5}}));
  lost.subtract(StoredRanges::everything());
  EXPECT_FALSE(lost.is_empty());
}

// A look at each block of such a file would take days.
TEST(StoredRangesTest, ASparseFileIsSoonLookedThrough) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 62;
  constexpr std::uint64_t kWritten = (std::uint64_t{1} << 47) + 3 * kPageBytes;
  NodeMemory memory = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor = testing::make_actor(memory);
  const int fd = testing::make_unnamed_file();
  PosixBacking file(fd, O_RDWR);
  StoreStatus status;
  ASSERT_EQ(file.status(&status), 0);
  const ObjectIndex object = open_object(actor, file, status, true);
  ASSERT_NE(object, ObjectIndex::kNone);
  memory.objects().at(object).size.store(kSize);
  const StoredRanges all = of({{0, kSize}});
  EXPECT_EQ(all.in_tiers(memory, object), StoredRanges::Residency::kNone);
  testing::AcceptingService service;
  service.memory = &memory;
  ASSERT_EQ(write_object({actor, object, file, service}, kWritten, "x", 1), 1);
  EXPECT_EQ(all.in_tiers(memory, object), StoredRanges::Residency::kSome);
  EXPECT_EQ(of({{kWritten, kWritten + 1}}).in_tiers(memory, object), StoredRanges::Residency::kAll);
  EXPECT_EQ(of({{kWritten + kBlockBytes, kSize}}).in_tiers(memory, object),
            StoredRanges::Residency::kNone);
  actor.drop_leases();
  ::close(fd);
}

}  // namespace
}  // namespace cairn::node
