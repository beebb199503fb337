// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/failure_board.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "memory/tiers/testing/failing_pool.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr TierId kTier{1};
constexpr std::uint32_t kNow = 1'000'000;

class FailureBoardTest : public ::testing::Test {
 protected:
  void note(std::uint32_t block, std::uint32_t ms, int error = -EIO) {
    board_.note_read(kTier, block * kBlockBytes, error, ms);
  }
  bool is_failing(std::uint32_t ms = kNow) const { return board_.tiers[1].is_failing(ms); }

  FailureBoard board_{};
};

TEST_F(FailureBoardTest, ATierFailsAfterThreeFailures) {
  note(7, kNow);
  note(8, kNow);
  EXPECT_FALSE(is_failing());
  note(9, kNow);
  EXPECT_TRUE(is_failing());
  EXPECT_EQ(board_.tiers[1].count.load(), 3U);
  EXPECT_EQ(board_.tiers[1].error.load(), static_cast<std::uint32_t>(EIO));
  EXPECT_FALSE(board_.tiers[2].is_failing(kNow));
}

TEST_F(FailureBoardTest, OneBadBlockIsNoFailingTierHoweverOftenItIsTried) {
  for (int time = 0; time < 20; ++time) note(7, kNow);
  note(8, kNow);
  EXPECT_FALSE(is_failing());
}

TEST_F(FailureBoardTest, EachWriteCounts) {
  board_.note_write(kTier, -ENOSPC, kNow);
  board_.note_write(kTier, -ENOSPC, kNow);
  EXPECT_FALSE(is_failing());
  board_.note_write(kTier, -ENOSPC, kNow);
  EXPECT_TRUE(is_failing());
}

TEST_F(FailureBoardTest, FailuresOfLongAgoDoNotCount) {
  note(1, kNow - FailureBoard::kWithinMs - 1);
  note(2, kNow);
  note(3, kNow);
  EXPECT_FALSE(is_failing());
  note(4, kNow);
  EXPECT_TRUE(is_failing()) << "the fourth takes the place of the oldest";
}

TEST_F(FailureBoardTest, ADeviceThatIsGoneFailsAtOnce) {
  note(1, kNow, -ENODEV);
  EXPECT_TRUE(is_failing());
  EXPECT_FALSE(board_.hangs(kTier));
}

// The kernel has given up and has said so. That a device hangs, only a wait in vain can show.
TEST_F(FailureBoardTest, ADeviceThatTimesOutIsGoneAndDoesNotHang) {
  note(1, kNow, -ETIMEDOUT);
  EXPECT_TRUE(is_failing());
  EXPECT_FALSE(board_.hangs(kTier));
}

TEST_F(FailureBoardTest, TheErrorsOfTheCallingProcessAreNotTheDevices) {
  for (const int error : {EFAULT, ENOMEM, EINTR, EAGAIN, EBADF, EFBIG})
    EXPECT_FALSE(FailureBoard::is_of_device(-error)) << error;
  for (const int error : {EIO, ENOSPC, EDQUOT, EBADMSG, ENODEV, EROFS, ETIMEDOUT})
    EXPECT_TRUE(FailureBoard::is_of_device(-error)) << error;
}

TEST(FailingTier, CountsWhatItsPoolFileDoesNotDo) {
  MemoryShape shape = testing::memory_only(testing::kMiB);
  shape.tier_bytes[1] = testing::kMiB;
  const NodeMemory memory = testing::make_memory(shape);
  const FailureBoard& board = memory.failure_board();
  const testing::FailingPool pool(memory, kTier);
  alignas(kPageBytes) std::array<std::byte, kPageBytes> page{};
  const Tier& tier = memory.tier(kTier);
  pool.lose_from(kBlockBytes);
  EXPECT_EQ(tier.read_pages({0, kPageBytes}, page.data()), 0);
  EXPECT_EQ(tier.read_pages({kBlockBytes, kPageBytes}, page.data()), -EIO);
  EXPECT_EQ(board.tiers[1].count.load(), 1U);
  pool.have_no_room();
  EXPECT_EQ(tier.write_pages({0, kPageBytes}, page.data()), -ENOSPC);
  EXPECT_EQ(board.tiers[1].count.load(), 2U);
  pool.refuse_writes();
  EXPECT_EQ(tier.write_pages({0, kPageBytes}, page.data()), -EBADF);
  EXPECT_EQ(board.tiers[1].count.load(), 2U);
}

TEST(FailingTier, ThatHangsIsNotAsked) {
  MemoryShape shape = testing::memory_only(testing::kMiB);
  shape.tier_bytes[1] = testing::kMiB;
  const NodeMemory memory = testing::make_memory(shape);
  const Tier& tier = memory.tier(kTier);
  alignas(kPageBytes) std::array<std::byte, kPageBytes> page{};
  EXPECT_EQ(tier.note_hang(), -ETIMEDOUT);
  EXPECT_EQ(tier.read_pages({0, kPageBytes}, page.data()), -ETIMEDOUT);
  EXPECT_EQ(tier.write_pages({0, kPageBytes}, page.data()), -ETIMEDOUT);
  EXPECT_EQ(memory.failure_board().tiers[1].count.load(), 1U) << "the two were not tried";
  memory.failure_board().tiers[1].hangs.store(0);
  EXPECT_EQ(tier.read_pages({0, kPageBytes}, page.data()), 0);
}

TEST(FailingTier, ThatIsASwapAreaMayHaveNoRoom) {
  MemoryShape shape = testing::memory_only(testing::kMiB);
  shape.tier_bytes[1] = testing::kMiB;
  shape.swap_tier = 1;
  const NodeMemory memory = testing::make_memory(shape);
  const testing::FailingPool pool(memory, kTier);
  alignas(kPageBytes) std::array<std::byte, kPageBytes> page{};
  pool.have_no_room();
  EXPECT_EQ(memory.tier(kTier).write_pages({0, kPageBytes}, page.data()), -ENOSPC);
  EXPECT_EQ(memory.failure_board().tiers[1].count.load(), 0U);
}

}  // namespace
}  // namespace cairn
