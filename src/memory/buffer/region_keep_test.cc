// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/region_keep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "memory/backing/region_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/region_identity.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::size_t kBytes = 2 * kBlockBytes;

class RegionKeepTest : public ::testing::Test {
 protected:
  RegionKeepTest() : bytes_(new_bytes()) {
    for (std::size_t at = 0; at < kBytes; ++at) bytes_[at] = cell(at);
    object_ = open_object(actor_, backing_, status_, false);
    EXPECT_NE(object_, ObjectIndex::kNone);
    tested_ = this;
    EXPECT_EQ(::sigaction(SIGSEGV, nullptr, &before_), 0);
  }
  ~RegionKeepTest() override {
    ::sigaction(SIGSEGV, &before_, nullptr);
    EXPECT_EQ(::mprotect(bytes_, kBytes, PROT_READ | PROT_WRITE), 0);
    (void)close_object(access(), false);
    ::munmap(bytes_, kBytes);
  }

  static std::byte* new_bytes() {
    void* made =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    return static_cast<std::byte*>(made);
  }
  static std::byte cell(std::size_t at) { return static_cast<std::byte>(at * 7 / 5); }
  ObjectAccess access() { return {actor_, object_, backing_, nobody_}; }

  // The region leaves the tiers, and its buckets are another object's, as soon as somebody writes
  // to its bytes.
  void lose_blocks_at_write() {
    struct sigaction action = {};
    action.sa_handler = [](int) { tested_->lose_blocks(); };
    ASSERT_EQ(::sigaction(SIGSEGV, &action, nullptr), 0);
    ASSERT_EQ(::mprotect(bytes_, kBytes, PROT_READ), 0);
  }
  void lose_blocks() {
    ::mprotect(bytes_, kBytes, PROT_READ | PROT_WRITE);
    const BucketIndex bucket = memory_.directory().find(object_, BlockNumber{0});
    const ObjectAccess other{organizer_, object_, backing_, nobody_};
    (void)drop_blocks(other, 0, UINT64_MAX, false, PlacementReason::kStagedOut);
    if (bucket != BucketIndex::kNone) ::memset(memory_.bytes(bucket), 0xee, kBlockBytes);
  }
  std::vector<std::byte> found() {
    std::vector<std::byte> found(kBytes);
    EXPECT_EQ(read_object(access(), 0, found.data(), kBytes), static_cast<ssize_t>(kBytes));
    return found;
  }

  static inline RegionKeepTest* tested_ = nullptr;
  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * testing::kMiB));
  Actor actor_ = testing::make_actor(memory_);
  Actor organizer_ = testing::make_actor(memory_);
  NoService nobody_;
  std::byte* const bytes_;
  const StoreStatus status_ = status_of_region(memory_.objects(), {ObjectKind::kFile, {}, {1, 2}},
                                               {{3, 4}, kBytes, FileVersion{5, 6, 7}});
  RegionBacking backing_{status_, bytes_};
  ObjectIndex object_ = ObjectIndex::kNone;
  struct sigaction before_ = {};
};

TEST_F(RegionKeepTest, ARegionIsInTheTiersWholly) {
  EXPECT_TRUE(keep_whole_region(access()));
  EXPECT_EQ(access().object().blocks.load(), 2u);
  RegionBacking nothing(status_, nullptr);
  std::vector<std::byte> found(kBytes);
  EXPECT_EQ(read_object({actor_, object_, nothing, nobody_}, 0, found.data(), kBytes),
            static_cast<ssize_t>(kBytes));
  EXPECT_TRUE(std::equal(found.begin(), found.end(), bytes_));
}

TEST_F(RegionKeepTest, WithoutBytesThereIsNothingToKeep) {
  RegionBacking nothing(status_, nullptr);
  EXPECT_FALSE(keep_whole_region({actor_, object_, nothing, nobody_}));
}

// Two keep the same region: the second finds blocks, which leave the tiers under its hands.
TEST_F(RegionKeepTest, BlocksThatGoMeanwhileAreFilledWithTheRegionsBytes) {
  ASSERT_TRUE(keep_whole_region(access()));
  ASSERT_NO_FATAL_FAILURE(lose_blocks_at_write());
  EXPECT_TRUE(keep_whole_region(access()));
  const std::vector<std::byte> kept = found();
  for (std::size_t at = 0; at < kBytes; ++at) {
    ASSERT_EQ(bytes_[at], cell(at)) << "the keeper's own memory, at " << at;
    ASSERT_EQ(kept[at], cell(at)) << "the tiers, at " << at;
  }
}

}  // namespace
}  // namespace cairn
