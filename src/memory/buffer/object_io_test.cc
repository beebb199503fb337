// SPDX-License-Identifier: Apache-2.0
// Random reads, writes, truncations, flushes and evictions of one file against a byte array, in one
// process, and what the store sees of the calls.
#include "memory/buffer/object_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "memory/buffer/fetch_ahead.h"
#include "memory/buffer/testing/object_on_tiers.h"
#include "memory/catalog/testing/block_probe.h"
#include "memory/flush/flush_object.h"

namespace cairn {
namespace {

using testing::Tiers;
using testing::Transfers;

// A file, and the byte array that holds the same bytes.
class ObjectIo : public testing::ObjectOnTiers {
 protected:
  // As the organizer does: clean blocks leave, or move down to the file tier.
  void evict_some() {
    for (std::uint32_t number = 0; number < 64; ++number) {
      if (random_() % 3 != 0) continue;
      LockedBlock block = lock_resident(actor_, index_, static_cast<BlockNumber>(number));
      if (!block || block.descriptor().dirty_pages() != 0) continue;
      if (UnclaimedBlock unclaimed(block); unclaimed)
        discard_block(actor_, std::move(unclaimed), PlacementReason::kNone);
    }
  }

  // As the placement engine does: another plan, or another home for the file or a part of it.
  void place_differently() {
    if (memory_.tier_count() < 2) return;
    std::array<TierId, PublishedPlan::kElements> pattern;
    for (TierId& tier : pattern) tier = static_cast<TierId>(random_() % memory_.tier_count());
    memory_.placement_board().plans[0].store(pattern);
    memory_.placement_board().keeps_together.store(random_() % 2);
    ObjectHandling handling;
    if (random_() % 2 == 0) handling.home = static_cast<TierId>(random_() % memory_.tier_count());
    if (random_() % 3 == 0) handling.parts = part(1, 4, PartProperty::kNeverBuffer, 1);
    if (random_() % 3 == 0) handling.parts = part(3, 9, PartProperty::kHome, 1);
    access().object().set_handling(handling);
  }

  void write_some(std::uint64_t offset, std::size_t length) {
    const std::uint64_t at =
        random_() % 2 == 0 ? std::min<std::uint64_t>(offset, model_.size()) : offset % 400'000;
    for (std::size_t i = 0; i < length; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_();
      std::memcpy(&buffer_[i], &word, std::min(sizeof word, length - i));
    }
    ASSERT_EQ(write_object(access(), at, buffer_.data(), length), static_cast<ssize_t>(length));
    if (model_.size() < at + length) model_.resize(at + length);
    std::copy_n(buffer_.begin(), length, model_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void read_some(std::uint64_t offset, std::size_t length) {
    const ssize_t got = read_object(access(), offset, buffer_.data(), length);
    const std::size_t expected =
        offset >= model_.size() ? 0 : std::min<std::size_t>(length, model_.size() - offset);
    ASSERT_EQ(got, static_cast<ssize_t>(expected));
    const auto begin = static_cast<std::ptrdiff_t>(std::min<std::size_t>(offset, model_.size()));
    ASSERT_TRUE(std::equal(buffer_.begin(), buffer_.begin() + got, model_.begin() + begin));
  }
  void truncate_to_some_size() {
    const std::uint64_t size = random_() % (model_.size() + 100'000);
    ASSERT_EQ(truncate_object(access(), size), 0);
    model_.resize(size);
  }
  void take_a_step() {
    constexpr std::uint64_t kSizeMax = 2'000'000;
    const std::uint64_t offset = random_() % kSizeMax;
    const std::size_t length = (random_() % 4 == 0 ? random_() % 300'000 : random_() % 9000) + 1;
    const std::uint64_t what = random_() % 10;
    if (what < 4) {
      write_some(offset, length);
    } else if (what < 7) {
      read_some(offset, length);
    } else if (what == 7) {
      if (random_() % 4 == 0) truncate_to_some_size();
    } else if (what == 8) {
      ASSERT_EQ(sync_object(access(), false, nullptr), 0);
    } else {
      evict_some();
      (void)fetch_ahead(access(), block_of(offset), static_cast<unsigned>(1 + random_() % 16), 0);
      if (random_() % 4 == 0) place_differently();
    }
  }
  void expect_stored() {
    std::vector<unsigned char> stored(model_.size() + 1);
    ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 0), static_cast<ssize_t>(model_.size()));
    stored.pop_back();
    EXPECT_TRUE(stored == model_);
    EXPECT_EQ(access().object().dirty_blocks.load(), 0u);
    EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), 0u);
  }

  std::mt19937_64 random_;
  std::vector<unsigned char> model_;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(300'000);
};

TEST_P(ObjectIo, AgreesWithAByteArray) {
  const std::uint64_t seed =
      std::getenv("CAIRN_SEED") ? std::strtoull(std::getenv("CAIRN_SEED"), nullptr, 10) : 42;
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  random_.seed(seed);
  for (int step = 0; step < 4000; ++step) {
    ASSERT_NO_FATAL_FAILURE(take_a_step()) << step;
    ASSERT_EQ(access().object().size.load(), model_.size()) << step;
  }
  ASSERT_EQ(sync_object(access(), true, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(expect_stored());
  ASSERT_EQ(drop_blocks(access(), 0, UINT64_MAX, false, PlacementReason::kStagedOut), 0);
  EXPECT_EQ(access().object().blocks.load(), 0u);
  actor_.drop_leases();
  EXPECT_EQ(memory_.pool(TierId::kMemory).free_slabs(), GetParam().memory_slabs);
}

// To read behind the end may mean to open the file for reading first, which a network file system
// makes wait for what is just being stored.
TEST_P(ObjectIo, WhatLiesBehindTheStoresEndIsNotAskedFor) {
  if (GetParam().memory_slabs != 0) GTEST_SKIP() << "nothing is read from a file tier";
  ASSERT_EQ(access().object().store_size.load(), 0U);
  const std::vector<unsigned char> piece(1000, 7);
  const Transfers before = Transfers::now();
  ASSERT_EQ(write_object(access(), kBlockBytes + 100, piece.data(), piece.size()), 1000);
  EXPECT_LE(Transfers::now().reads - before.reads, 2U) << "what looking costs";
  std::vector<unsigned char> expected(kBlockBytes + 1100, 0);
  std::copy(piece.begin(), piece.end(), expected.begin() + kBlockBytes + 100);
  std::vector<unsigned char> read(expected.size(), 1);
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, expected);
}

TEST_P(ObjectIo, PartsGoWhereTheyBelongAndBlocksThatAreNotBufferedToTheStore) {
  std::vector<unsigned char> data(5 * kBlockBytes);
  std::mt19937_64 random(4);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  ObjectHandling handling;
  handling.parts = part(2, 3, PartProperty::kNeverBuffer, 1);
  access().object().set_handling(handling);
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  for (std::uint32_t number = 0; number < 5; ++number) {
    const auto block = static_cast<BlockNumber>(number);
    const bool is_resident = memory_.directory().find(index_, block) != BucketIndex::kNone;
    EXPECT_EQ(is_resident, number < 2 || number > 3) << number;
  }
  std::vector<unsigned char> stored(2 * kBlockBytes);
  ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 2 * kBlockBytes),
            static_cast<ssize_t>(stored.size()));
  EXPECT_TRUE(std::equal(stored.begin(), stored.end(), data.begin() + 2 * kBlockBytes));
  std::vector<unsigned char> read(data.size());
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
  EXPECT_EQ(memory_.directory().find(index_, BlockNumber{2}), BucketIndex::kNone)
      << "a read does not bring it in either";

  handling.mode = BufferingMode::kScratch;
  access().object().set_handling(handling);
  ASSERT_EQ(write_object(access(), 2 * kBlockBytes, data.data(), 10), 10);
  EXPECT_NE(memory_.directory().find(index_, BlockNumber{2}), BucketIndex::kNone)
      << "scratch data has no other place";

  if (GetParam().file_slabs == 0) return;
  handling.parts = part(8, 8, PartProperty::kHome, 1);
  access().object().set_handling(handling);
  ASSERT_EQ(write_object(access(), 8 * kBlockBytes, data.data(), 10), 10);
  EXPECT_EQ(tier_of(8), static_cast<TierId>(1));
  ASSERT_EQ(read_object(access(), 8 * kBlockBytes, read.data(), 10), 10);
  EXPECT_EQ(tier_of(8), static_cast<TierId>(1)) << "a read does not move it up";
}

// The kernel may have given up pages that a flush has written but not yet marked clean.
TEST_P(ObjectIo, AFailedSyncWritesAgainWhatIsBeingStored) {
  const std::vector<char> bytes(kBlockBytes, 'x');
  ASSERT_EQ(write_object(access(), 0, bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  std::uint32_t claimed_at = 0;
  BlockDescriptor* descriptor = nullptr;
  {
    LockedBlock block = lock_resident(actor_, index_, static_cast<BlockNumber>(0));
    ASSERT_TRUE(block);
    descriptor = &memory_.block(block.bucket());
    BlockProbe(*descriptor).claim_as(memory_.owners().current(3));
    claimed_at = descriptor->sequence();
    BlockProbe(*descriptor).set_state(BlockState::kFlushing);
  }
  redirty_object(actor_, index_);
  // The flush compares the sequence before it says that the block is clean.
  EXPECT_NE(descriptor->sequence(), claimed_at);
  EXPECT_EQ(descriptor->state(), BlockState::kFlushing);
  EXPECT_EQ(memory_.objects().at(index_).dirty_blocks.load(), 1U);
  BlockProbe(*descriptor).claim_as(Owner());
}

// Times that were left for later would find nobody to settle them, and hide a changed size.
TEST_P(ObjectIo, InThroughModeTheKernelsTimesAreTheTruth) {
  Object& object = access().object();
  object.mtime_ns.store(INT64_MAX / 2);
  ASSERT_EQ(enter_through(access()), 0);
  ASSERT_EQ(truncate_object(access(), 1000), 0);
  StoreStatus status;
  ASSERT_EQ(file_->status(&status), 0);
  EXPECT_EQ(object.mtime_ns.load(), status.stamp.mtime_ns);
  EXPECT_FALSE(object.has(kObjectTimesDirty));
  adopt_times(actor_, index_, status.stamp, true);
  EXPECT_FALSE(object.has(kObjectTimesDirty));
  leave_through(actor_, index_);

  ASSERT_EQ(ftruncate(fd_, 70'000), 0);
  ASSERT_EQ(file_->status(&status), 0);
  ASSERT_EQ(open_object(actor_, *file_, status, true), index_);
  EXPECT_EQ(object.size.load(), 70'000u) << "the next open sees what the kernel has";
  EXPECT_EQ(close_object(access(), true), 0);
}

// The size, too: times taken over without it would make an old size look like the file's.
TEST_P(ObjectIo, ARefusedAllocationTakesOverWhatTheKernelHasMadeOfTheFile) {
  ASSERT_EQ(enter_through(access()), 0);
  ASSERT_EQ(ftruncate(fd_, 70'001), 0);
  // No file system moves bytes that are not whole blocks.
  ASSERT_LT(allocate_object(access(), FALLOC_FL_INSERT_RANGE, 1, 1), 0);
  StoreStatus status;
  ASSERT_EQ(file_->status(&status), 0);
  EXPECT_EQ(visible_stamp(access().object(), status.stamp).size, 70'001U);
  EXPECT_EQ(access().object().size.load(), 70'001U);
  leave_through(actor_, index_);
}

// A network file system takes a size only after all data before it: the flusher brings both.
TEST_P(ObjectIo, AClosedFileOnANetworkIsLeftToTheFlusher) {
  std::vector<unsigned char> data(100'000, 5);
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  access().object().set(kObjectRemote);
  StoreStatus status;
  ASSERT_EQ(file_->status(&status), 0);
  const std::uint64_t before = status.stamp.size;
  ASSERT_LT(before, data.size());
  ASSERT_EQ(close_object(access(), true), 0);
  ASSERT_EQ(file_->status(&status), 0);
  EXPECT_EQ(status.stamp.size, before);
  EXPECT_TRUE(access().object().has(kObjectTimesDirty)) << "the flusher sees that it has to";
  ASSERT_EQ(open_object(actor_, *file_, status, true), index_);
  // The test's file has no name, but is none that was deleted.
  access().object().clear(kObjectUnlinked);
  ObjectHandling at_the_end;
  at_the_end.trigger = FlushTrigger::kOnExit;
  access().object().set_handling(at_the_end);
  ASSERT_EQ(close_object(access(), true), 0);
  ASSERT_EQ(file_->status(&status), 0);
  EXPECT_EQ(status.stamp.size, data.size()) << "the flusher would bring it at the end only";
  ASSERT_EQ(open_object(actor_, *file_, status, true), index_);
  access().object().clear(kObjectUnlinked);
}

TEST_P(ObjectIo, ShortWritesIntoMemoryAreTimedBySample) {
  const bool in_memory = GetParam().memory_slabs != 0;
  const auto cycles_of_a_write = [this](std::size_t length) {
    const std::uint64_t before = actor_.counters->get(Counter::kIoCycles);
    EXPECT_EQ(write_object(access(), 0, buffer_.data(), length), static_cast<ssize_t>(length));
    return actor_.counters->get(Counter::kIoCycles) - before;
  };
  EXPECT_GT(cycles_of_a_write(100), 0u) << "a bucket is taken";
  for (unsigned write = 1; write < Actor::kSampleWritesEvery / 2; ++write)
    EXPECT_EQ(cycles_of_a_write(100) == 0, in_memory) << write;
  EXPECT_GT(cycles_of_a_write(100), 0u) << "the sample";
  EXPECT_GT(cycles_of_a_write(8192), 0u) << "long ones are timed";
}

TEST_P(ObjectIo, ThreadsOnDisjointRangesKeepTheirBytes) {
  constexpr int kThreads = 3;
  std::vector<std::thread> threads;
  std::atomic<bool> failed{false};
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      Actor actor = make_actor();
      const ObjectAccess mine{actor, index_, *file_, service_};
      std::mt19937_64 random(static_cast<std::uint64_t>(id));
      // Ranges interleave at 1000 bytes, so that pages and blocks are shared.
      for (int round = 0; round < 3000; ++round) {
        const std::uint64_t slot = random() % 500 * kThreads + static_cast<unsigned>(id);
        std::array<unsigned char, 1000> out;
        out.fill(static_cast<unsigned char>(random()));
        if (write_object(mine, slot * 1000, out.data(), out.size()) != 1000) failed = true;
        std::array<unsigned char, 1000> in{};
        if (read_object(mine, slot * 1000, in.data(), in.size()) != 1000 || in != out)
          failed = true;
        if (round % 200 == 0 && sync_object(mine, false, nullptr) != 0) failed = true;
        if (round % 150 == 0) {
          LockedBlock block = lock_resident(actor, index_, block_of(slot * 1000));
          if (!block || block.descriptor().dirty_pages() != 0) continue;
          if (UnclaimedBlock unclaimed(block); unclaimed) {
            discard_block(actor, std::move(unclaimed), PlacementReason::kNone);
          }
        }
      }
      actor.drop_leases();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(failed.load());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ObjectIo,
                         ::testing::Values(Tiers{4, 0}, Tiers{16, 0}, Tiers{64, 0}, Tiers{8, 32},
                                           Tiers{0, 32}));

}  // namespace
}  // namespace cairn
