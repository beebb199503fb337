// SPDX-License-Identifier: Apache-2.0
// Calls on a file whose blocks are in a tier that fails.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "memory/backing/testing/faulty_backing.h"
#include "memory/buffer/testing/object_on_tiers.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/testing/failing_pool.h"

namespace cairn {
namespace {

using testing::Tiers;
using Bytes = std::vector<unsigned char>;

constexpr TierId kBelow{1};
constexpr std::size_t kLostFrom = 12 * kPageBytes;

// The file belongs below, where its blocks lie in the order in which they come.
class FailingTierIo : public testing::ObjectOnTiers {
 protected:
  void SetUp() override {
    ObjectOnTiers::SetUp();
    ObjectHandling handling;
    handling.home = kBelow;
    access().object().set_handling(handling);
    pool_.emplace(memory_, kBelow);
  }
  void TearDown() override {
    pool_.reset();
    ObjectOnTiers::TearDown();
  }

  // No two pages of it are alike.
  static Bytes pattern(std::size_t bytes) {
    Bytes pattern(bytes);
    for (std::size_t at = 0; at < bytes; ++at)
      pattern[at] = static_cast<unsigned char>(at * 7 + at / kPageBytes * 13);
    return pattern;
  }
  void write(std::uint64_t offset, const Bytes& bytes) {
    ASSERT_EQ(write_object(access(), offset, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // What a read gives; its error stands for no bytes.
  std::pair<Bytes, int> read(std::uint64_t offset, std::size_t length) {
    Bytes bytes(length, 0xee);
    const ssize_t got = read_object(access(), offset, bytes.data(), length);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return {bytes, got < 0 ? static_cast<int>(-got) : 0};
  }
  Bytes stored(std::uint64_t offset, std::size_t length) const {
    Bytes bytes(length);
    const ssize_t got = pread(fd_, bytes.data(), length, static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  static Bytes part(const Bytes& bytes, std::size_t begin, std::size_t end) {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  BucketIndex bucket_of(std::uint32_t number) {
    return memory_.directory().find(index_, static_cast<BlockNumber>(number));
  }

  std::optional<testing::FailingPool> pool_;
};

class LossList final : public LossWitness {
 public:
  void note_unreadable(ObjectIndex, BlockNumber number, std::uint16_t pages) override {
    losses.emplace_back(raw(number), pages);
  }
  std::vector<std::pair<std::uint32_t, std::uint16_t>> losses;
};

TEST_P(FailingTierIo, WhatTheStoreHasIsReadFromThere) {
  const Bytes bytes = pattern(3 * kBlockBytes);
  write(0, bytes);
  ASSERT_EQ(sync_object(access(), false, nullptr), 0);
  ASSERT_EQ(memory_.tier_of(bucket_of(1)), kBelow);
  pool_->lose_from(0);
  EXPECT_TRUE(read(0, bytes.size()).first == bytes);
  EXPECT_TRUE(read(kBlockBytes + 5, 100).first == part(bytes, kBlockBytes + 5, kBlockBytes + 105));
  EXPECT_GT(memory_.failure_board().tiers[1].count.load(), 0U);
  const MoveJournal::Cell& dropped =
      memory_.journal().at(raw(kBelow), MoveJournal::kDropped, PlacementReason::kTierFailed);
  EXPECT_GE(dropped.blocks.load(), 3U);
}

TEST_P(FailingTierIo, WhatTheStoreHasNotIsAnErrorOfExactlyThesePages) {
  const Bytes bytes = pattern(2 * kBlockBytes);
  write(kBlockBytes, part(bytes, kBlockBytes, 2 * kBlockBytes));
  write(0, part(bytes, 0, kBlockBytes));
  ASSERT_EQ(raw(bucket_of(0)), raw(bucket_of(1)) + 1) << "in the order in which they came";
  pool_->lose_from(kBlockBytes + kLostFrom);
  EXPECT_TRUE(read(0, kBlockBytes).first == part(bytes, 0, kLostFrom)) << "as far as it goes";
  EXPECT_EQ(read(kLostFrom, kBlockBytes - kLostFrom).second, EIO);
  EXPECT_EQ(read(kLostFrom + 100, 1).second, EIO);
  EXPECT_TRUE(read(kBlockBytes, kBlockBytes).first == part(bytes, kBlockBytes, 2 * kBlockBytes));
  EXPECT_TRUE(read(kLostFrom - 1, 1).first == part(bytes, kLostFrom - 1, kLostFrom));
  EXPECT_EQ(read(kBlockBytes - 1, 10).second, EIO) << "and no old bytes of the store";
  // Written anew, it is there again.
  write(kLostFrom, part(bytes, kLostFrom, kBlockBytes));
  EXPECT_TRUE(read(0, bytes.size()).first == bytes);
}

TEST_P(FailingTierIo, PagesThatAreCleanBesideDirtyOnesComeFromTheStore) {
  Bytes bytes = pattern(kBlockBytes);
  write(0, bytes);
  ASSERT_EQ(sync_object(access(), false, nullptr), 0);
  const Bytes changed(kPageBytes, 0x55);
  write(2 * kPageBytes, changed);
  std::copy(changed.begin(), changed.end(), bytes.begin() + 2 * kPageBytes);
  pool_->lose_from(kLostFrom);
  EXPECT_TRUE(read(0, kBlockBytes).first == bytes);
}

TEST_P(FailingTierIo, AFlushStoresWhatItCanAndNamesTheRest) {
  const Bytes bytes = pattern(3 * kBlockBytes);
  write(kBlockBytes, part(bytes, kBlockBytes, 3 * kBlockBytes));
  write(0, part(bytes, 0, kBlockBytes));
  pool_->lose_from(2 * kBlockBytes + kLostFrom);
  LossList list;
  FlushRequest request(index_, *file_);
  request.losses = &list;
  const FlushResult result = flush_object(actor_, request);
  EXPECT_EQ(result.error, -EIO);
  EXPECT_TRUE(result.is_of_tier);
  EXPECT_EQ(result.bytes, 2 * kBlockBytes + kLostFrom);
  ASSERT_EQ(list.losses.size(), 1U);
  EXPECT_EQ(list.losses[0], std::make_pair(0U, std::uint16_t{0xf000}));
  EXPECT_TRUE(stored(kBlockBytes, 2 * kBlockBytes) == part(bytes, kBlockBytes, 3 * kBlockBytes));
  EXPECT_TRUE(stored(0, kLostFrom) == part(bytes, 0, kLostFrom));
  EXPECT_EQ(access().object().dirty_blocks.load(), 1U);
  EXPECT_EQ(memory_.block(bucket_of(0)).dirty_pages(), 0xf000);
  EXPECT_EQ(sync_object(access(), false, nullptr), -EIO) << "an end, and the same one";
  write(kLostFrom, part(bytes, kLostFrom, kBlockBytes));
  EXPECT_EQ(sync_object(access(), false, nullptr), 0);
  EXPECT_TRUE(stored(0, bytes.size()) == bytes);
}

TEST_P(FailingTierIo, AWriteThatTheTierDoesNotTakeGoesToTheStore) {
  Bytes bytes = pattern(kBlockBytes);
  write(0, bytes);
  pool_->refuse_writes();
  // From the middle of a page to the middle of another one.
  const Bytes changed(2 * kPageBytes, 0x55);
  constexpr std::size_t kAt = 2 * kPageBytes + 1000;
  write(kAt, changed);
  std::copy(changed.begin(), changed.end(), bytes.begin() + kAt);
  EXPECT_TRUE(read(0, kBlockBytes).first == bytes);
  EXPECT_TRUE(stored(2 * kPageBytes, 3 * kPageBytes) ==
              part(bytes, 2 * kPageBytes, 5 * kPageBytes));
  EXPECT_EQ(memory_.block(bucket_of(0)).dirty_pages(), 0xffe3);
  EXPECT_EQ(sync_object(access(), false, nullptr), 0);
  EXPECT_TRUE(stored(0, kBlockBytes) == bytes);
}

TEST_P(FailingTierIo, AStoreThatTakesThePagesBitByBitGetsAllOfThemOrSaysWhatIsWrong) {
  Bytes bytes = pattern(kBlockBytes);
  write(0, bytes);
  pool_->refuse_writes();
  testing::FaultyBacking store(*file_);
  const ObjectAccess over(actor_, index_, store, service_);
  const Bytes changed(2 * kPageBytes, 0x55);
  store.shorten(testing::BackingCall::kWrite, 1000);
  ASSERT_EQ(write_object(over, 2 * kPageBytes, changed.data(), changed.size()),
            static_cast<ssize_t>(changed.size()));
  std::copy(changed.begin(), changed.end(), bytes.begin() + 2 * kPageBytes);
  EXPECT_TRUE(read(0, kBlockBytes).first == bytes);
  store.fail(testing::BackingCall::kWrite, ENOSPC, store.count(testing::BackingCall::kWrite) + 3);
  EXPECT_EQ(write_object(over, 5 * kPageBytes, changed.data(), changed.size()), -ENOSPC);
  EXPECT_TRUE(read(0, kBlockBytes).first == bytes) << "nothing was written";
}

TEST_P(FailingTierIo, APieceOfALostPageCannotBeWritten) {
  const Bytes bytes = pattern(kBlockBytes);
  write(0, bytes);
  pool_->lose_from(kLostFrom);
  const Bytes changed(100, 0x55);
  EXPECT_EQ(write_object(access(), kLostFrom + 8, changed.data(), changed.size()), -EIO);
  EXPECT_TRUE(read(0, kLostFrom).first == part(bytes, 0, kLostFrom));
}

TEST_P(FailingTierIo, NothingComesToATierThatIsOutOfService) {
  const Bytes bytes = pattern(2 * kBlockBytes);
  write(0, part(bytes, 0, kBlockBytes));
  memory_.failure_board().out_of_service.store(1U << raw(kBelow));
  const std::uint32_t free = memory_.pool(kBelow).free_slabs();
  write(kBlockBytes, part(bytes, kBlockBytes, 2 * kBlockBytes));
  EXPECT_EQ(memory_.pool(kBelow).free_slabs(), free);
  // Nor a byte of what is there already.
  write(100, Bytes(10, 0x55));
  const BucketIndex bucket = bucket_of(0);
  EXPECT_TRUE(memory_.in_memory(bucket) || memory_.block(bucket).valid_pages() == 0xfffe);
  EXPECT_EQ(read(100, 1).first, Bytes(1, 0x55));
}

TEST_P(FailingTierIo, ACutLeavesTheStoresTail) {
  const Bytes bytes = pattern(kBlockBytes);
  write(0, bytes);
  ASSERT_EQ(sync_object(access(), false, nullptr), 0);
  write(0, part(bytes, 0, kPageBytes));
  pool_->lose_from(kLostFrom);
  ASSERT_EQ(truncate_object(access(), kLostFrom + 10), 0);
  EXPECT_TRUE(read(0, kBlockBytes).first == part(bytes, 0, kLostFrom + 10));
}

INSTANTIATE_TEST_SUITE_P(Shapes, FailingTierIo, ::testing::Values(Tiers{0, 32}, Tiers{8, 32}));

}  // namespace
}  // namespace cairn
