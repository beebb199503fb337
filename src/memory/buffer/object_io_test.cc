// SPDX-License-Identifier: Apache-2.0
// Random reads, writes, truncations, flushes and evictions of one file against a byte array, in one
// process.
#include "memory/buffer/object_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/fetch_ahead.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/catalog/testing/block_probe.h"
#include "memory/tiers/promotion_bar.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

struct Tiers {
  unsigned memory_slabs;
  unsigned file_slabs;
};

class ObjectIo : public ::testing::TestWithParam<Tiers> {
 protected:
  void SetUp() override {
    fd_ = testing::make_unnamed_file();
    ASSERT_GE(fd_, 0);
    MemoryShape shape;
    shape.tier_bytes[0] = GetParam().memory_slabs * kBlockBytes;
    shape.tier_bytes[1] = GetParam().file_slabs * kBlockBytes;
    shape.clients_max = 8;
    auto memory = NodeMemory::create(shape, {"", "/var/tmp"});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    service_.memory = &memory_;
    file_.emplace(fd_, O_RDWR);
    actor_ = make_actor();
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, *file_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
    memory_.objects().at(index_).clear(kObjectUnlinked);
  }
  void TearDown() override {
    actor_.drop_leases();
    close(fd_);
  }

  Actor make_actor() {
    Actor actor;
    actor.memory = &memory_;
    actor.self = memory_.owners().current(2);
    actor.counters = &memory_.slot(2).shards[0];
    return actor;
  }
  ObjectAccess access() { return ObjectAccess{actor_, index_, *file_, service_}; }

  // What the organizer does: clean blocks leave, or move down to the file tier.
  void evict(std::mt19937_64& random) {
    for (std::uint32_t number = 0; number < 64; ++number) {
      if (random() % 3 != 0) continue;
      LockedBlock block = lock_resident(actor_, index_, static_cast<BlockNumber>(number));
      if (!block || block.descriptor().dirty_pages() != 0) continue;
      if (UnclaimedBlock unclaimed(block); unclaimed)
        discard_block(actor_, std::move(unclaimed), PlacementReason::kNone);
    }
  }

  // A set of one statement about some of the file's blocks.
  std::uint8_t part(std::uint32_t first, std::uint32_t last, PartProperty property,
                    std::uint8_t value) {
    PartStatement statement;
    statement.first_block = first;
    statement.last_block = last;
    statement.property = property;
    statement.value = value;
    PartSet set;
    EXPECT_TRUE(set.add(memory_.rules().parts().add(statement)));
    return memory_.rules().parts().intern(set);
  }

  // What the placement engine does: another plan, or another home for the file or a part of it.
  void place_differently(std::mt19937_64& random) {
    if (memory_.tier_count() < 2) return;
    std::array<TierId, PublishedPlan::kElements> pattern;
    for (TierId& tier : pattern) tier = static_cast<TierId>(random() % memory_.tier_count());
    memory_.placement_board().plans[0].store(pattern);
    memory_.placement_board().keeps_together.store(random() % 2);
    ObjectHandling handling;
    if (random() % 2 == 0) handling.home = static_cast<TierId>(random() % memory_.tier_count());
    if (random() % 3 == 0) handling.parts = part(1, 4, PartProperty::kNeverBuffer, 1);
    if (random() % 3 == 0) handling.parts = part(3, 9, PartProperty::kHome, 1);
    access().object().set_handling(handling);
  }
  TierId tier_of(std::uint32_t number) {
    const auto block = static_cast<BlockNumber>(number);
    return memory_.tier_of(memory_.directory().find(index_, block));
  }

  int fd_ = -1;
  NodeMemory memory_;
  testing::AcceptingService service_;
  std::optional<PosixBacking> file_;
  Actor actor_;
  ObjectIndex index_{};
};

TEST_P(ObjectIo, AgreesWithAByteArray) {
  const std::uint64_t seed =
      std::getenv("CAIRN_SEED") ? std::strtoull(std::getenv("CAIRN_SEED"), nullptr, 10) : 42;
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<unsigned char> model;
  std::vector<unsigned char> buffer(300'000);
  constexpr std::uint64_t kSizeMax = 2'000'000;
  for (int step = 0; step < 4000; ++step) {
    const std::uint64_t offset = random() % kSizeMax;
    const std::size_t length = (random() % 4 == 0 ? random() % 300'000 : random() % 9000) + 1;
    switch (random() % 10) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::uint64_t at =
            random() % 2 == 0 ? std::min<std::uint64_t>(offset, model.size()) : offset % 400'000;
        for (std::size_t i = 0; i < length; ++i) buffer[i] = static_cast<unsigned char>(random());
        ASSERT_EQ(write_object(access(), at, buffer.data(), length), static_cast<ssize_t>(length));
        if (model.size() < at + length) model.resize(at + length);
        std::copy_n(buffer.begin(), length, model.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 4:
      case 5:
      case 6: {
        const ssize_t got = read_object(access(), offset, buffer.data(), length);
        const std::size_t expected =
            offset >= model.size() ? 0 : std::min<std::size_t>(length, model.size() - offset);
        ASSERT_EQ(got, static_cast<ssize_t>(expected)) << step;
        ASSERT_TRUE(std::equal(buffer.begin(), buffer.begin() + got,
                               model.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min<std::size_t>(offset, model.size()))))
            << step;
        break;
      }
      case 7:
        if (random() % 4 == 0) {
          const std::uint64_t size = random() % (model.size() + 100'000);
          ASSERT_EQ(truncate_object(access(), size), 0);
          model.resize(size);
        }
        break;
      case 8:
        ASSERT_EQ(sync_object(access(), false, nullptr), 0);
        break;
      default:
        evict(random);
        (void)fetch_ahead(access(), block_of(offset), static_cast<unsigned>(1 + random() % 16), 0);
        if (random() % 4 == 0) place_differently(random);
    }
    ASSERT_EQ(access().object().size.load(), model.size()) << step;
  }
  ASSERT_EQ(sync_object(access(), true, nullptr), 0);
  std::vector<unsigned char> stored(model.size() + 1);
  ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 0), static_cast<ssize_t>(model.size()));
  stored.pop_back();
  EXPECT_TRUE(stored == model);
  EXPECT_EQ(access().object().dirty_blocks.load(), 0u);
  EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), 0u);
  ASSERT_EQ(drop_blocks(access(), 0, UINT64_MAX, false, PlacementReason::kStagedOut), 0);
  EXPECT_EQ(access().object().blocks.load(), 0u);
  actor_.drop_leases();
  EXPECT_EQ(memory_.pool(TierId::kMemory).free_slabs(), GetParam().memory_slabs);
}

TEST_P(ObjectIo, NewBlocksGoWhereTheFileBelongs) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  std::vector<unsigned char> block(kBlockBytes, 7);
  ASSERT_EQ(write_object(access(), 0, block.data(), block.size()),
            static_cast<ssize_t>(block.size()));
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  ASSERT_EQ(write_object(access(), 100, block.data(), 10), 10);
  std::vector<unsigned char> read(kBlockBytes);
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, block);
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1)) << "neither a write nor a read moves it up";
}

// System calls of this process so far that moved bytes, as the kernel counts them (proc(5)).
struct Transfers {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;

  static Transfers now() {
    std::ifstream file("/proc/thread-self/io");
    Transfers transfers;
    for (std::string name; file >> name;) {
      if (name == "syscr:") file >> transfers.reads;
      if (name == "syscw:") file >> transfers.writes;
    }
    return transfers;
  }
};

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

TEST_P(ObjectIo, LargeRequestsToAFileTierStayLarge) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  constexpr std::size_t kBytes = 8 * kBlockBytes;
  auto* pages = static_cast<unsigned char*>(std::aligned_alloc(kPageBytes, 2 * kBytes));
  std::mt19937_64 random(5);
  for (std::size_t at = 0; at < kBytes; ++at) pages[at] = static_cast<unsigned char>(random());
  std::vector<unsigned char> unaligned(kBytes + 1);
  // The library that counts opens a file of its own.
  constexpr std::uint64_t kCallsMax = 8;

  const Transfers before = Transfers::now();
  ASSERT_EQ(write_object(access(), 0, pages, kBytes), static_cast<ssize_t>(kBytes));
  const Transfers written = Transfers::now();
  unsigned char* copy = pages + kBytes;
  ASSERT_EQ(read_object(access(), 0, copy, kBytes), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(std::memcmp(copy, pages, kBytes), 0);
  ASSERT_EQ(read_object(access(), 0, unaligned.data() + 1, kBytes), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(std::memcmp(unaligned.data() + 1, pages, kBytes), 0);
  const Transfers read = Transfers::now();
  // It is one; block by block they would be eight. A sanitizer looks at what is called for the
  // first time with a few writes of its own.
  EXPECT_LT(written.writes - before.writes, kBytes / kBlockBytes);
  EXPECT_LE(read.reads - written.reads, 2 + kCallsMax);
  EXPECT_EQ(actor_.counters->get(hit_bytes_counter(static_cast<TierId>(1))), 2 * kBytes);

  // From the middle of a page to the middle of another one, and beyond the end.
  ASSERT_EQ(write_object(access(), kBytes, pages, 777), 777);
  constexpr std::size_t kAt = kBlockBytes + 1234;
  const auto expected = static_cast<ssize_t>(kBytes + 777 - kAt);
  ASSERT_EQ(read_object(access(), kAt, copy, kBytes), expected);
  EXPECT_EQ(std::memcmp(copy, pages + kAt, kBytes - kAt), 0);
  EXPECT_EQ(std::memcmp(copy + (kBytes - kAt), pages, 777), 0);
  std::free(pages);
}

TEST_P(ObjectIo, AFileTierThatTakesNothingIsPassedOver) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  // The same file, for reading only.
  const int tier_fd = memory_.tier(static_cast<TierId>(1)).on_device({}).descriptor;
  const int read_only = open(("/proc/self/fd/" + std::to_string(tier_fd)).c_str(), O_RDONLY);
  ASSERT_GE(read_only, 0);
  ASSERT_EQ(dup2(read_only, tier_fd), tier_fd);
  close(read_only);
  std::vector<unsigned char> data(5 * kBlockBytes + 100, 9);
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(access().object().blocks.load(), 0u);
  EXPECT_EQ(access().object().dirty_blocks.load(), 0u);
  std::vector<unsigned char> stored(data.size());
  ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 0), static_cast<ssize_t>(stored.size()));
  EXPECT_EQ(stored, data);
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

// What would be left to settle later had nobody to do it, and kept a changed size from being seen.
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
  // What the flush asks before it says that the block is clean.
  EXPECT_NE(descriptor->sequence(), claimed_at);
  EXPECT_EQ(descriptor->state(), BlockState::kFlushing);
  EXPECT_EQ(memory_.objects().at(index_).dirty_blocks.load(), 1U);
  BlockProbe(*descriptor).claim_as(Owner());
}

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

TEST_P(ObjectIo, AFullTierIsPassedOver) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  const unsigned blocks = GetParam().memory_slabs + GetParam().file_slabs / 2;
  std::vector<unsigned char> data(std::size_t{blocks} * kBlockBytes);
  std::mt19937_64 random(3);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(actor_.counters->get(Counter::kWriteThroughBytes), 0u);
  EXPECT_EQ(access().object().blocks.load(), blocks);
  EXPECT_EQ(tier_of(blocks - 1), static_cast<TierId>(1));
  std::vector<unsigned char> read(data.size());
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
}

// With RAM short of room, only what is used more often than what had to leave moves up.
TEST_P(ObjectIo, AScanIsReadWhereItLies) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs == 0) GTEST_SKIP() << "one tier";
  const auto file_tier = static_cast<TierId>(1);
  ObjectHandling handling;
  handling.home = file_tier;
  access().object().set_handling(handling);
  std::vector<unsigned char> block(kBlockBytes, 7);
  ASSERT_EQ(write_object(access(), 0, block.data(), block.size()),
            static_cast<ssize_t>(block.size()));
  access().object().set_handling(ObjectHandling());
  OrganizerBoard& board = memory_.organizer_board();
  board.roomy_slabs.store(GetParam().memory_slabs);
  PromotionBar::raise(board, 2, monotonic_coarse_ms());
  std::vector<unsigned char> read(kBlockBytes);
  const auto read_all = [&] {
    ASSERT_EQ(read_object(access(), 0, read.data(), read.size()),
              static_cast<ssize_t>(read.size()));
    ASSERT_EQ(read, block);
  };
  read_all();
  EXPECT_EQ(tier_of(0), file_tier) << "nobody has come back to it";
  read_all();
  EXPECT_EQ(tier_of(0), file_tier) << "what had to leave was used as often";
  PromotionBar::raise(board, 2, monotonic_coarse_ms() - 2 * PromotionBar::kHoldsMs);
  read_all();
  EXPECT_EQ(tier_of(0), TierId::kMemory) << "the bar has fallen";
}

// Who reads a block in pieces gets the rest of it with the second piece.
TEST_P(ObjectIo, PiecesOfABlockInAFileTierAreReadOnce) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  std::vector<unsigned char> data(2 * kBlockBytes);
  std::mt19937_64 random(6);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  std::array<unsigned char, kPageBytes> piece;
  const auto read_pieces = [&] {
    for (std::size_t at = 0; at < data.size(); at += piece.size()) {
      ASSERT_EQ(read_object(access(), at, piece.data(), piece.size()),
                static_cast<ssize_t>(piece.size()));
      ASSERT_EQ(std::memcmp(piece.data(), data.data() + at, piece.size()), 0) << at;
    }
  };
  const Transfers before = Transfers::now();
  read_pieces();
  // One for the first piece, one for each block; the rest are the counting library's.
  EXPECT_LE(Transfers::now().reads - before.reads, 3u + 8);
  // Who goes on in order reads more at once: 1, 2, 4 blocks and what is left.
  std::vector<unsigned char> many(9 * kBlockBytes);
  for (unsigned char& byte : many) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, many.data(), many.size()), static_cast<ssize_t>(many.size()));
  data = many;
  const Transfers before_many = Transfers::now();
  read_pieces();
  EXPECT_LE(Transfers::now().reads - before_many.reads, 6u + 2);
  // What another thread writes is seen at once.
  Actor other = make_actor();
  const ObjectAccess others{other, index_, *file_, service_};
  data[kBlockBytes + 5] ^= 0xff;
  ASSERT_EQ(write_object(others, kBlockBytes + 5, data.data() + kBlockBytes + 5, 1), 1);
  other.drop_leases();
  read_pieces();
}

// With RAM full, a block that is written in pieces waits for the organizer's next move.
// What is written while RAM is full and somebody is about to make room in it.
TEST_P(ObjectIo, PiecesAndWhatThePlanWantsInMemoryWaitForRoom) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs == 0) GTEST_SKIP() << "one tier";
  std::vector<unsigned char> block(kBlockBytes, 3);
  for (unsigned number = 0; number < GetParam().memory_slabs; ++number) {
    ASSERT_EQ(write_object(access(), number * kBlockBytes, block.data(), block.size()),
              static_cast<ssize_t>(block.size()));
  }
  ASSERT_EQ(sync_object(access(), false, nullptr), 0);
  std::uint32_t next = GetParam().memory_slabs;
  const auto write_while_room_is_made = [&](std::size_t length, std::uint32_t victim_number) {
    actor_.drop_leases();
    ASSERT_EQ(memory_.pool(TierId::kMemory).free_slabs(), 0u);
    Bell& bell = memory_.organizer_board().bell;
    const std::uint32_t heard = bell.listen();
    bell.announce();
    std::thread organizer([&] {
      while (bell.listen() == heard) std::this_thread::yield();
      Actor actor = make_actor();
      LockedBlock victim = lock_resident(actor, index_, static_cast<BlockNumber>(victim_number));
      UnclaimedBlock unclaimed(victim);
      discard_block(actor, std::move(unclaimed), PlacementReason::kNone);
      actor.drop_leases();
    });
    ASSERT_EQ(write_object(access(), next * kBlockBytes, block.data(), length),
              static_cast<ssize_t>(length));
    organizer.join();
    EXPECT_EQ(tier_of(next++), TierId::kMemory) << length << " bytes";
  };
  write_while_room_is_made(100, 0);
  memory_.placement_board().makes_room.store(1);
  write_while_room_is_made(kBlockBytes, 1);
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

// With RAM full, what is read from the store is kept in the next tier for the next time.
TEST_P(ObjectIo, AMissFillsTheTierThatHasRoom) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs != 0) GTEST_SKIP() << "has RAM";
  std::vector<unsigned char> data(100'000, 5);
  ASSERT_EQ(pwrite(fd_, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  access().object().size.store(data.size());
  access().object().store_size.store(data.size());
  std::vector<unsigned char> read(data.size());
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
  EXPECT_EQ(tier_of(1), static_cast<TierId>(1));
  const std::uint64_t misses = actor_.counters->get(Counter::kMissBytes);
  std::fill(read.begin(), read.end(), 0);
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
  EXPECT_EQ(actor_.counters->get(Counter::kMissBytes), misses);
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
