// SPDX-License-Identifier: Apache-2.0
// Bytes of RAM and of a file tier that change by themselves, as a program that reads them sees it.
#include "memory/tiers/page_seals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "memory/buffer/testing/object_on_tiers.h"

namespace cairn {
namespace {

using testing::Tiers;

class PageSeals : public testing::ObjectOnTiers {
 protected:
  // The store has the file, and RAM its only block.
  void read_file() {
    stored_.resize(kBlockBytes);
    for (std::size_t at = 0; at < stored_.size(); ++at)
      stored_[at] = static_cast<unsigned char>(at / kPageBytes + at % 241);
    ASSERT_EQ(write_object(access(), 0, stored_.data(), stored_.size()),
              static_cast<ssize_t>(stored_.size()));
    ASSERT_EQ(pwrite(fd_, stored_.data(), stored_.size(), 0), static_cast<ssize_t>(stored_.size()));
    access().object().store_size.store(stored_.size());
    LockedBlock block = lock_resident(actor_, index_, BlockNumber{0});
    UnclaimedBlock unclaimed(block);
    discard_block(actor_, static_cast<UnclaimedBlock&&>(unclaimed), PlacementReason::kNone);
    expect_stored();
  }
  BucketIndex bucket() { return memory_.directory().find(index_, BlockNumber{0}); }
  const BlockDescriptor& descriptor() { return memory_.block(bucket()); }
  std::uint16_t broken() { return broken_pages(memory_, bucket(), descriptor().sequence()); }
  // A byte of RAM changes, and nobody has written it.
  void flip(std::size_t offset) { memory_.bytes(bucket())[offset] ^= std::byte{0x10}; }
  void expect_stored() {
    std::vector<unsigned char> read(stored_.size());
    ASSERT_EQ(read_object(access(), 0, read.data(), read.size()),
              static_cast<ssize_t>(read.size()));
    EXPECT_TRUE(read == stored_);
  }

  std::vector<unsigned char> stored_;
};

TEST_P(PageSeals, WhatComesFromTheStoreIsSealedUntilItIsWritten) {
  read_file();
  const bool are_kept = GetParam().checksums != Checksums::kOff;
  EXPECT_EQ(descriptor().sealed_pages(descriptor().sequence()), are_kept ? kAllPages : 0);
  EXPECT_EQ(broken(), 0);
  flip(3 * kPageBytes + 7);
  EXPECT_EQ(broken(), are_kept ? 1U << 3 : 0U);
  ASSERT_EQ(write_object(access(), 100, stored_.data(), 10), 10);
  EXPECT_EQ(descriptor().sealed_pages(descriptor().sequence()), 0) << "the block has changed";
  EXPECT_EQ(broken(), 0);
}

TEST_P(PageSeals, TheFirstReadComparesWhereAllIsCompared) {
  read_file();
  flip(9 * kPageBytes + 7);
  if (GetParam().checksums != Checksums::kAll) {
    EXPECT_FALSE(descriptor().is_unproven());
    return;
  }
  EXPECT_TRUE(descriptor().is_unproven());
  expect_stored();
  EXPECT_TRUE(descriptor().is_unproven()) << "a page has come from the store again";
  expect_stored();
  EXPECT_FALSE(descriptor().is_unproven());
  EXPECT_EQ(memory_.failure_board().tiers[0].broken.load(), 1u);
}

TEST_P(PageSeals, AWriterOfAMarkedBlockKeepsWhatIsSound) {
  read_file();
  flip(9 * kPageBytes + 7);
  ASSERT_EQ(write_object(access(), 9 * kPageBytes, stored_.data() + 9 * kPageBytes, 10), 10);
  EXPECT_FALSE(descriptor().is_unproven());
  if (GetParam().checksums == Checksums::kAll) expect_stored();
}

// The write fills the rest of its page first, under the same lock.
TEST_P(PageSeals, AWriteOfAPieceSealsNothing) {
  read_file();
  LockedBlock block = lock_resident(actor_, index_, BlockNumber{0});
  UnclaimedBlock unclaimed(block);
  unclaimed.cut(0x00ff);
  unclaimed.unlock();
  ASSERT_EQ(write_object(access(), 12 * kPageBytes + 5, stored_.data(), 10), 10);
  std::copy_n(stored_.begin(), 10, stored_.begin() + 12 * kPageBytes + 5);
  EXPECT_EQ(descriptor().sealed_pages(descriptor().sequence()), 0);
  EXPECT_EQ(broken(), 0);
  expect_stored();
}

INSTANTIATE_TEST_SUITE_P(Checks, PageSeals,
                         ::testing::Values(Tiers{4, 0, Checksums::kMovement},
                                           Tiers{4, 4, Checksums::kMovement},
                                           Tiers{4, 0, Checksums::kAll},
                                           Tiers{4, 0, Checksums::kOff}));

}  // namespace
}  // namespace cairn
