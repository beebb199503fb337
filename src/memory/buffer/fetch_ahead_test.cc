// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/fetch_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/backing/testing/faulty_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::uint8_t kPredictor = 3;
constexpr std::size_t kFileBlocks = 40;
constexpr std::size_t kTail = 1234;  // bytes of the last block

class FetchAhead : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = testing::make_unnamed_file();
    ASSERT_GE(fd_, 0);
    content_.resize((kFileBlocks - 1) * kBlockBytes + kTail);
    for (std::size_t at = 0; at < content_.size(); ++at)
      content_[at] = static_cast<unsigned char>(at * 7 + at / kBlockBytes);
    ASSERT_EQ(pwrite(fd_, content_.data(), content_.size(), 0),
              static_cast<ssize_t>(content_.size()));
    memory_ = testing::make_memory(testing::memory_only(32 * kBlockBytes));
    memory_.event_board().wanted.store(EventLevel::kReads);
    file_.emplace(fd_, O_RDWR);
    actor_ = testing::make_actor(memory_);
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, *file_, status, false);
    memory_.objects().at(index_).clear(kObjectUnlinked);
  }
  void TearDown() override {
    actor_.drop_leases();
    close(fd_);
  }

  // As a program's call.
  ObjectAccess access() {
    return ObjectAccess{actor_, index_, *file_, nobody_, static_cast<DescriptionIndex>(5)};
  }
  Fetched fetch(std::uint32_t first, unsigned count) {
    return fetch_ahead(access(), static_cast<BlockNumber>(first), count, kPredictor);
  }
  FetchJournal::Line& line() { return memory_.fetches().of(kPredictor); }
  // Reads, compares, and returns the kind of the event that the service gets.
  AccessKind read(std::uint64_t offset, std::size_t length) {
    std::vector<unsigned char> buffer(length);
    EXPECT_EQ(read_object(access(), offset, buffer.data(), length), static_cast<ssize_t>(length));
    EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(),
                           content_.begin() + static_cast<std::ptrdiff_t>(offset)));
    const EventRing& ring = memory_.events(actor_.self.slot());
    if (ring.head() == told_) return AccessKind::kNone;
    AccessEvent event;
    EXPECT_EQ(ring.read(ring.head() - 1, &event), EventRing::Got::kEvent);
    told_ = ring.head();
    EXPECT_EQ(event.offset, offset);
    return event.kind;
  }

  int fd_ = -1;
  std::vector<unsigned char> content_;
  NodeMemory memory_;
  NoService nobody_;
  std::optional<PosixBacking> file_;
  Actor actor_;
  ObjectIndex index_{};
  std::uint32_t told_ = 0;
};

TEST_F(FetchAhead, TheFirstUseIsSeenAndCountedOnce) {
  const Fetched fetched = fetch(2, 4);
  EXPECT_EQ(fetched.blocks, 4U);
  EXPECT_EQ(fetched.error, 0);
  EXPECT_EQ(line().fetched_bytes.load(), 4 * kBlockBytes);
  EXPECT_EQ(memory_.fetches().unused_bytes(), 4 * kBlockBytes);
  // In the middle of a block, where a plain hit tells nothing.
  EXPECT_EQ(read(3 * kBlockBytes + 100, 200), AccessKind::kFirstUse);
  EXPECT_EQ(line().used_bytes.load(), kBlockBytes);
  EXPECT_EQ(read(3 * kBlockBytes + 100, 200), AccessKind::kNone) << "now a plain hit";
  EXPECT_EQ(line().used_bytes.load(), kBlockBytes);
  EXPECT_EQ(read(8 * kBlockBytes + 100, 200), AccessKind::kMiss);
}

TEST_F(FetchAhead, EndsWithTheFileAndAtResidentBlocks) {
  EXPECT_EQ(fetch(kFileBlocks - 2, 16).blocks, 2U);
  EXPECT_EQ(read((kFileBlocks - 1) * kBlockBytes, kTail), AccessKind::kFirstUse);
  EXPECT_EQ(fetch(kFileBlocks, 4).blocks, 0U);
  read(5 * kBlockBytes, 10);
  const Fetched before = fetch(3, 8);
  EXPECT_EQ(before.blocks, 2U);
  EXPECT_FALSE(before.has_no_room);
  EXPECT_EQ(fetch(5, 1).blocks, 0U);
}

TEST_F(FetchAhead, WhatIsMissingComesAlsoBehindResidentBlocks) {
  read(2 * kBlockBytes, 10);
  read(5 * kBlockBytes, 10);
  const Fetched fetched = fetch_missing(access(), BlockNumber{0}, 8, kPredictor);
  EXPECT_EQ(fetched.blocks, 8U);
  EXPECT_EQ(fetched.error, 0);
  EXPECT_EQ(line().fetched_bytes.load(), 6 * kBlockBytes);
  for (const std::uint64_t block : {0U, 1U, 3U, 4U, 6U, 7U})
    EXPECT_EQ(read(block * kBlockBytes, 10), AccessKind::kFirstUse) << block;
  const auto at_the_end = static_cast<BlockNumber>(kFileBlocks - 2);
  EXPECT_EQ(fetch_missing(access(), at_the_end, 16, kPredictor).blocks, 16U);
  EXPECT_EQ(line().fetched_bytes.load(), 8 * kBlockBytes);
}

TEST_F(FetchAhead, WhatFollowsTheEndOfTheFileReadsAsZeros) {
  EXPECT_EQ(fetch(kFileBlocks - 1, 1).blocks, 1U);
  ASSERT_EQ(truncate_object(access(), content_.size() + 1000), 0);
  std::vector<unsigned char> buffer(1000, 1);
  ASSERT_EQ(read_object(access(), content_.size(), buffer.data(), buffer.size()), 1000);
  EXPECT_EQ(buffer, std::vector<unsigned char>(1000, 0));
}

TEST_F(FetchAhead, WithoutRoomNothingIsEvictedForIt) {
  EXPECT_EQ(fetch(0, 16).blocks, 16U);
  EXPECT_EQ(fetch(16, 16).blocks, 16U);
  const Fetched third = fetch(32, 4);
  EXPECT_EQ(third.blocks, 0U);
  EXPECT_TRUE(third.has_no_room);
  EXPECT_EQ(read(0, 100), AccessKind::kFirstUse);
}

TEST_F(FetchAhead, WhatGoesUnusedIsCounted) {
  fetch(0, 3);
  read(0, 100);
  ASSERT_EQ(drop_blocks(access(), 0, UINT64_MAX, false, PlacementReason::kStagedOut), 0);
  EXPECT_EQ(line().evicted_unused_bytes.load(), 2 * kBlockBytes);
  EXPECT_EQ(memory_.fetches().unused_bytes(), 0U);
  // The bucket's next tenant is an ordinary block.
  EXPECT_EQ(read(9 * kBlockBytes + 1, 10), AccessKind::kMiss);
  EXPECT_EQ(line().used_bytes.load(), kBlockBytes);
}

TEST_F(FetchAhead, TakesTheRoomOfWhomItIsFor) {
  memory_.slot(4).account.store(7);
  actor_.works_for = 4;
  ASSERT_EQ(fetch(0, 1).blocks, 1U);
  const BucketIndex bucket = memory_.directory().find(index_, BlockNumber{0});
  EXPECT_EQ(raw(memory_.pool(TierId::kMemory).account_of(bucket)), 7U);
}

TEST_F(FetchAhead, AWriteUsesTheBlockToo) {
  fetch(0, 2);
  const unsigned char byte = 1;
  testing::AcceptingService service;
  service.memory = &memory_;
  const ObjectAccess writes{actor_, index_, *file_, service};
  ASSERT_EQ(write_object(writes, 10, &byte, 1), 1);
  EXPECT_EQ(line().used_bytes.load(), kBlockBytes);
}

TEST_F(FetchAhead, WhoeverWaitsForItIsLate) {
  // The lock that the fetch holds while it reads, taken by another process.
  fetch(0, 1);
  const BucketIndex bucket = memory_.directory().find(index_, BlockNumber{0});
  Actor other = testing::make_actor(memory_);
  other.self = memory_.owners().current(2);
  LockedBlock locked(other.worker(), bucket);
  std::thread waiter([this] { EXPECT_EQ(read(100, 10), AccessKind::kLate); });
  while ((memory_.block(bucket).word() & BlockDescriptor::kWaiters) == 0) std::this_thread::yield();
  locked.set_changed();
  locked.unlock();
  waiter.join();
  EXPECT_EQ(line().late_bytes.load(), kBlockBytes);
  EXPECT_EQ(line().used_bytes.load(), kBlockBytes);
}

TEST_F(FetchAhead, AnErrorOfTheStoreLeavesNothingBehind) {
  testing::FaultyBacking broken(*file_);
  broken.fail(testing::BackingCall::kRead, EIO);
  const ObjectAccess access{actor_, index_, broken, nobody_};
  EXPECT_EQ(fetch_ahead(access, BlockNumber{0}, 4, kPredictor).error, -EIO);
  EXPECT_EQ(memory_.objects().at(index_).blocks.load(), 0U);
  EXPECT_EQ(line().fetched_bytes.load(), 0U);
  EXPECT_EQ(read(0, 100), AccessKind::kMiss);
}

// A fetch of another thread never shows a byte that is not the file's, whatever is written, cut
// off and evicted meanwhile.
TEST_F(FetchAhead, FetchesBesideWritesAndTruncationsChangeNothing) {
  std::mt19937_64 random(7);
  std::atomic<bool> stopping{false};
  std::thread fetcher([&] {
    Actor other = testing::make_actor(memory_);
    other.self = memory_.owners().current(2);
    PosixBacking file(fd_, O_RDONLY);
    const ObjectAccess fetches{other, index_, file, nobody_};
    std::mt19937_64 draws(8);
    while (!stopping.load()) {
      const auto first = static_cast<BlockNumber>(draws() % kFileBlocks);
      (void)fetch_ahead(fetches, first, static_cast<unsigned>(1 + draws() % kFetchBlocksMax),
                        kPredictor);
    }
    other.drop_leases();
  });
  testing::AcceptingService service;
  service.memory = &memory_;
  const ObjectAccess writes{actor_, index_, *file_, service};
  std::vector<unsigned char> bytes(100'000);
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t offset = random() % (kFileBlocks * kBlockBytes);
    const std::size_t length = 1 + random() % bytes.size();
    const std::uint64_t kind = random() % 10;
    if (kind < 5 && offset < content_.size()) {
      const std::size_t got = std::min<std::size_t>(length, content_.size() - offset);
      ASSERT_EQ(read_object(writes, offset, bytes.data(), length), static_cast<ssize_t>(got));
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(got),
                             content_.begin() + static_cast<std::ptrdiff_t>(offset)))
          << step;
    } else if (kind < 8) {
      for (std::size_t at = 0; at < length; ++at) bytes[at] = static_cast<unsigned char>(random());
      ASSERT_EQ(write_object(writes, offset, bytes.data(), length), static_cast<ssize_t>(length));
      if (content_.size() < offset + length) content_.resize(offset + length);
      std::copy_n(bytes.begin(), length, content_.begin() + static_cast<std::ptrdiff_t>(offset));
    } else if (kind == 8) {
      ASSERT_EQ(truncate_object(writes, offset), 0);
      content_.resize(offset);
    } else {
      ASSERT_EQ(drop_blocks(writes, 0, UINT64_MAX, false, PlacementReason::kStagedOut), 0);
    }
  }
  stopping.store(true);
  fetcher.join();
}

TEST_F(FetchAhead, NothingIsFetchedWhileTheKernelHasTheFile) {
  ASSERT_EQ(enter_through(access()), 0);
  EXPECT_EQ(fetch(0, 4).blocks, 0U);
  leave_through(actor_, index_);
  EXPECT_EQ(fetch(0, 4).blocks, 4U);
}

}  // namespace
}  // namespace cairn
