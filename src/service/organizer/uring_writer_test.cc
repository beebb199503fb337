// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/uring_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/ids.h"
#include "memory/tiers/file_tier.h"

namespace cairn {
namespace {

class UringWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* place = std::getenv("TEST_TMPDIR");
    auto tier =
        FileTier::create(place != nullptr ? place : "/tmp", PoolIdentity{{1, 2}, 1, kBlocks});
    ASSERT_TRUE(tier.is_ok()) << tier.status().message();
    tier_ = std::move(tier.value());
    memory_ = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlocks * kBlockBytes));
  }
  void TearDown() override { std::free(memory_); }

  // Each block with its own number.
  std::vector<iovec> make_blocks() {
    std::vector<iovec> parts;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::memset(memory_ + block * kBlockBytes, static_cast<int>(block + 1), kBlockBytes);
      parts.push_back({memory_ + block * kBlockBytes, kBlockBytes});
    }
    return parts;
  }
  TierPlace blocks_from(std::size_t first, std::size_t count) const {
    return TierPlace{&tier_, TierExtent{first * kBlockBytes, count * kBlockBytes}};
  }
  void expect_all_written() {
    auto* read = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlockBytes));
    for (std::size_t block = 0; block < kBlocks; ++block) {
      ASSERT_EQ(blocks_from(block, 1).read(read), 0);
      EXPECT_EQ(std::memcmp(read, memory_ + block * kBlockBytes, kBlockBytes), 0) << block;
    }
    std::free(read);
  }

  static constexpr std::size_t kBlocks = 150;  // more than two rings full
  FileTier tier_;
  std::byte* memory_ = nullptr;
};

TEST_F(UringWriterTest, WritesEveryBlockOfALargeBatch) {
  std::vector<BatchWrite> writes;
  std::vector<iovec> parts = make_blocks();
  // Runs of one, two and three blocks.
  for (std::size_t block = 0, run = 1; block < kBlocks; block += run, run = run % 3 + 1) {
    run = std::min(run, kBlocks - block);
    writes.push_back(BatchWrite{blocks_from(block, run), std::span(&parts[block], run), -1});
  }
  UringWriter writer;
  writer.write_all(writes);
  for (const BatchWrite& write : writes) EXPECT_EQ(write.result, 0);
  expect_all_written();
}

TEST_F(UringWriterTest, BatchesAreWaitedForOneByOne) {
  std::array<std::vector<BatchWrite>, 2> batches;
  std::vector<iovec> parts = make_blocks();
  for (std::size_t block = 0; block < kBlocks; ++block) {
    batches[block % 2].push_back(
        BatchWrite{blocks_from(block, 1), std::span(&parts[block], 1), -1});
  }
  UringWriter writer;
  for (std::vector<BatchWrite>& batch : batches) writer.start(batch);
  for (std::vector<BatchWrite>& batch : batches) {
    writer.wait(batch);
    for (const BatchWrite& write : batch) EXPECT_EQ(write.result, 0);
  }
  expect_all_written();
}

TEST_F(UringWriterTest, ReportsTheErrorOfOneWriteAndDoesTheOthers) {
  const FileTier unwritable(::open("/dev/null", O_RDONLY | O_CLOEXEC), kBlockBytes);
  std::memset(memory_, 1, 2 * kBlockBytes);
  const iovec part{memory_, kBlockBytes};
  std::vector<BatchWrite> writes = {
      BatchWrite{TierPlace{&unwritable, {0, kBlockBytes}}, std::span(&part, 1), 0},
      BatchWrite{blocks_from(0, 1), std::span(&part, 1), -1}};
  UringWriter writer;
  writer.write_all(writes);
  EXPECT_EQ(writes[0].result, -EBADF);
  EXPECT_EQ(writes[1].result, 0);
}

}  // namespace
}  // namespace cairn
