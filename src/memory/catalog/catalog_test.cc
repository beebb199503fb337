// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <vector>

#include "memory/catalog/block_directory.h"
#include "memory/catalog/block_state.h"
#include "memory/catalog/description_table.h"
#include "memory/catalog/hash_lines.h"
#include "memory/catalog/object_table.h"
#include "memory/catalog/record_cursor.h"
#include "memory/catalog/testing/block_probe.h"

namespace cairn {
namespace {

struct Owners {
  std::unique_ptr<std::atomic<std::uint32_t>[]> generations{new std::atomic<std::uint32_t>[16]()};
  OwnerTable table{generations.get(), 16};
  Owner self = Owner(1, 0);
};

TEST(HashLines, HoldsWhatWasInsertedUntilItIsErased) {
  Owners owners;
  constexpr std::uint64_t kLines = 64;
  auto lines = std::make_unique<HashLine[]>(kLines);
  HashLines hash(lines.get(), kLines);
  // Few homes: lines overflow, and every erase must leave the others reachable.
  const auto position = [](std::uint32_t key) { return HashPosition{key % 5, key * 2654435761u}; };
  const auto find = [&](std::uint32_t key) {
    return hash.find(position(key), [&](std::uint32_t value) { return value == key; });
  };
  std::vector<std::uint32_t> present;
  for (std::uint32_t key = 1; key <= 150; ++key) {
    OwnedGuard guard(hash.lock_of(position(key)), owners.self, owners.table);
    ASSERT_TRUE(hash.insert_locked(position(key), key));
  }
  for (std::uint32_t key = 1; key <= 150; key += 2) {
    OwnedGuard guard(hash.lock_of(position(key)), owners.self, owners.table);
    ASSERT_TRUE(hash.erase_locked(position(key), key));
    ASSERT_FALSE(hash.erase_locked(position(key), key));
  }
  for (std::uint32_t key = 1; key <= 150; ++key) {
    EXPECT_EQ(find(key), key % 2 == 0 ? key : HashLines::kNotFound) << key;
  }
  for (std::uint32_t key = 2; key <= 150; key += 2) {
    OwnedGuard guard(hash.lock_of(position(key)), owners.self, owners.table);
    ASSERT_TRUE(hash.erase_locked(position(key), key));
  }
  for (std::uint64_t line = 0; line < kLines; ++line) {
    EXPECT_EQ(lines[line].overflow.load(), 0u) << "an empty table has no overflow left";
  }
}

TEST(HashLines, SaysWhenItIsFull) {
  Owners owners;
  auto lines = std::make_unique<HashLine[]>(2);
  HashLines hash(lines.get(), 2);
  std::uint32_t key = 1;
  while (hash.insert_locked(HashPosition{0, key}, key)) ++key;
  EXPECT_EQ(key, 2 * HashLine::kSlots + 1);
}

class BlockDirectoryTest : public testing::Test {
 protected:
  // As a RAM tier of 1 GiB has them (memory/tiers/node_memory.cc).
  static constexpr std::uint32_t kBuckets = 16 * 16384;
  static constexpr std::uint64_t kLines = kBuckets / 4;
  Owners owners_;
  std::unique_ptr<HashLine[]> lines_{new HashLine[kLines]};
  std::unique_ptr<BlockDescriptor[]> descriptors_{new BlockDescriptor[kBuckets + 1]};
  BlockDirectory directory_{HashLines(lines_.get(), kLines), descriptors_.get(), kBuckets + 1};

  void publish(std::uint32_t bucket, std::uint32_t object, std::uint32_t number) {
    BlockProbe(descriptors_[bucket])
        .set_identity(static_cast<ObjectIndex>(object), static_cast<BlockNumber>(number));
    const auto index = static_cast<BucketIndex>(bucket);
    ASSERT_EQ(directory_.publish(index, owners_.self, owners_.table), index);
  }
  // How many of the buckets up to `last` are guessed; all must be found.
  std::uint32_t count_guessed(std::uint32_t last) const {
    std::uint32_t guessed = 0;
    for (std::uint32_t bucket = 1; bucket <= last; ++bucket) {
      const auto index = static_cast<BucketIndex>(bucket);
      const BlockDescriptor& block = descriptors_[bucket];
      EXPECT_EQ(directory_.find(block.object_index(), block.block_number()), index);
      if (directory_.guess(block.object_index(), block.block_number()) == index) ++guessed;
    }
    return guessed;
  }
};

TEST_F(BlockDirectoryTest, TheBlocksOfLargeFilesAreWhereOneLooksFirst) {
  std::uint32_t bucket = 0;
  for (std::uint32_t object = 1; object <= 16; ++object) {
    for (std::uint32_t number = 0; number < 1024; ++number) publish(++bucket, object, number);
  }
  EXPECT_GE(count_guessed(bucket), bucket * 95 / 100);
}

TEST_F(BlockDirectoryTest, ATierFullOfSmallFilesFindsRoom) {
  for (std::uint32_t bucket = 1; bucket <= kBuckets; ++bucket) publish(bucket, bucket, 0);
  EXPECT_GE(count_guessed(kBuckets), kBuckets * 2 / 5) << "seven slots for four files on average";
}

TEST_F(BlockDirectoryTest, AMovedBlockIsGuessedInItsNewPlace) {
  publish(1, 5, 7);
  BlockProbe(descriptors_[2])
      .set_identity(static_cast<ObjectIndex>(5), static_cast<BlockNumber>(7));
  const auto from = static_cast<BucketIndex>(1);
  const auto to = static_cast<BucketIndex>(2);
  ASSERT_TRUE(directory_.move(from, to, owners_.self, owners_.table));
  EXPECT_EQ(directory_.guess(static_cast<ObjectIndex>(5), static_cast<BlockNumber>(7)), to);
  ASSERT_TRUE(directory_.withdraw(to, owners_.self, owners_.table));
  EXPECT_EQ(directory_.guess(static_cast<ObjectIndex>(5), static_cast<BlockNumber>(7)),
            BucketIndex::kNone);
}

// A reader that copied half of a block before its writer was killed and the rest afterwards must
// not find the sequence that it began with, even if the process that takes the lock over changes
// nothing.
TEST(BlockLock, IsTakenFromTheDeadWithANewSequence) {
  Owners owners;
  BlockDescriptor block;
  const std::uint32_t before = block.sequence();
  BlockProbe(block).lock_as(owners.self);
  owners.table.advance(owners.self.slot());
  const Owner other(2, 0);
  EXPECT_TRUE(BlockProbe(block).lock(other, owners.table)) << "taken over";
  BlockProbe(block).unlock(other);
  EXPECT_FALSE(BlockDescriptor::is_locked(block.word()));
  EXPECT_NE(block.sequence(), before);
}

TEST(BlockStates, OnlyDirtyBlocksAreFlushedAndNoFlushEndsInFree) {
  EXPECT_TRUE(is_legal_transition(BlockState::kDirty, BlockState::kFlushing));
  EXPECT_FALSE(is_legal_transition(BlockState::kClean, BlockState::kFlushing));
  EXPECT_FALSE(is_legal_transition(BlockState::kFlushing, BlockState::kFree));
  EXPECT_FALSE(is_legal_transition(BlockState::kFree, BlockState::kClean));
  EXPECT_FALSE(is_legal_transition(BlockState::kFree, BlockState::kDirty));
}

class ObjectTableTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kCapacity = 64;
  Owners owners_;
  std::unique_ptr<Object[]> objects_{new Object[kCapacity]()};
  std::unique_ptr<HashLine[]> lines_{new HashLine[64]};
  ObjectBoard board_{};
  UnservedBoard unserved_{};
  ObjectTable table_{objects_.get(), kCapacity, HashLines(lines_.get(), 64), &board_, &unserved_};

  ObjectIndex acquire(std::uint64_t inode, const StoreStamp& stamp, Acquisition* how) {
    return table_.acquire(file_key(1, inode, 7), stamp, owners_.self, owners_.table, how);
  }
  ObjectIndex open(std::uint64_t inode, bool* created) {
    Acquisition how;
    const ObjectIndex index = acquire(inode, StoreStamp{100, 5, 6, table_.reclaims()}, &how);
    *created = how.is_new;
    return index;
  }
};

TEST_F(ObjectTableTest, MakesNoObjectFromAStampThatIsOlderThanAReclaim) {
  const StoreStamp before{100, 5, 6, table_.reclaims()};
  bool created = false;
  const ObjectIndex first = open(10, &created);
  table_.at(first).opens.store(0);
  ASSERT_TRUE(table_.reclaim(first, owners_.self, owners_.table));
  Acquisition how;
  EXPECT_EQ(acquire(10, before, &how), ObjectIndex::kNone);
  EXPECT_TRUE(how.is_too_old);
  EXPECT_NE(acquire(10, StoreStamp{200, 7, 8, table_.reclaims()}, &how), ObjectIndex::kNone);
  EXPECT_TRUE(how.is_new);
  EXPECT_FALSE(how.is_too_old);
  // A record that exists needs no stamp.
  EXPECT_NE(acquire(10, before, &how), ObjectIndex::kNone);
}

TEST_F(ObjectTableTest, OneFileIsOneObject) {
  bool created = false;
  const ObjectIndex first = open(10, &created);
  EXPECT_TRUE(created);
  EXPECT_EQ(open(10, &created), first);
  EXPECT_FALSE(created);
  EXPECT_EQ(table_.at(first).opens.load(), 2u);
  EXPECT_EQ(table_.at(first).size.load(), 100u);
  EXPECT_EQ(table_.find(file_key(1, 10, 8)), ObjectIndex::kNone)
      << "a reused inode is another file";
}

TEST_F(ObjectTableTest, KindStoreInodeAndBirthTellObjectsApart) {
  const ObjectKey key = file_key(0xfd01, 10, 7);
  const ObjectKey others[] = {ObjectKey{ObjectKind::kScratch, key.store, key.id},
                              ObjectKey{ObjectKind::kRegion, key.store, key.id},
                              file_key(0xfd02, 10, 7), file_key(0xfd01, 11, 7),
                              file_key(0xfd01, 10, 8)};
  Acquisition how;
  const ObjectIndex index = table_.acquire(key, StoreStamp{}, owners_.self, owners_.table, &how);
  EXPECT_EQ(table_.at(index).key(), key);
  EXPECT_EQ(table_.at(index).kind(), ObjectKind::kFile);
  for (const ObjectKey& other : others) {
    EXPECT_EQ(table_.find(other), ObjectIndex::kNone);
    const ObjectIndex its = table_.acquire(other, StoreStamp{}, owners_.self, owners_.table, &how);
    EXPECT_TRUE(how.is_new);
    EXPECT_NE(its, index);
    EXPECT_EQ(table_.at(its).key(), other);
  }
  EXPECT_EQ(table_.find(key), index);
}

TEST_F(ObjectTableTest, ARecordForgetsWhatItsLastObjectWasElsewhere) {
  bool created = false;
  const ObjectIndex index = open(10, &created);
  Object& object = table_.at(index);
  object.mark(kMarkKnownElsewhere, true);
  object.path.store(7);
  object.log_position.store(5);
  object.home_node.store(3);
  object.durability.store(Durability::kNode);
  object.opens.store(0);
  EXPECT_FALSE(table_.reclaim(index, owners_.self, owners_.table)) << "the log still has it";
  object.log_position.store(0);
  ASSERT_TRUE(table_.reclaim(index, owners_.self, owners_.table));
  // Once around the table, until the record is another file's.
  std::uint64_t inode = 10;
  for (ObjectIndex next = ObjectIndex::kNone; next != index;) {
    next = open(++inode, &created);
    ASSERT_NE(next, ObjectIndex::kNone);
  }
  EXPECT_FALSE(object.is_marked(kMarkKnownElsewhere));
  EXPECT_EQ(object.path.load(), 0u);
  EXPECT_EQ(object.log_position.load(), 0u);
  EXPECT_EQ(object.home_node.load(), 0u);
  EXPECT_EQ(object.durability.load(), Durability::kStore);
}

TEST_F(ObjectTableTest, ANewObjectBeginsInThroughModeWhileItMayBeAnUnservedFile) {
  const ObjectKey key = file_key(1, 10, 7);
  const auto acquire = [&] {
    Acquisition how;
    const ObjectIndex index = table_.acquire(key, StoreStamp{}, owners_.self, owners_.table, &how);
    EXPECT_EQ(how.begins_through ? 1u : 0u, table_.at(index).through.load());
    return how;
  };
  unserved_.keys.store(1);
  EXPECT_TRUE(acquire().begins_through);
  table_.at(table_.find(key)).through.store(0);
  EXPECT_FALSE(acquire().begins_through) << "who made it has asked";
  table_.at(table_.find(key)).opens.store(0);
  ASSERT_TRUE(table_.reclaim(table_.find(key), owners_.self, owners_.table));
  unserved_.keys.store(0);
  EXPECT_FALSE(acquire().begins_through);
}

TEST_F(ObjectTableTest, OnlyUnreferencedRecordsAreReclaimed) {
  bool created = false;
  const ObjectIndex index = open(10, &created);
  EXPECT_FALSE(table_.reclaim(index, owners_.self, owners_.table));
  table_.at(index).opens.store(0);
  table_.at(index).set(kObjectTimesDirty);
  EXPECT_FALSE(table_.reclaim(index, owners_.self, owners_.table))
      << "times are still to be stored";
  table_.at(index).clear(kObjectTimesDirty);
  EXPECT_TRUE(table_.reclaim(index, owners_.self, owners_.table));
  EXPECT_EQ(table_.find(file_key(1, 10, 7)), ObjectIndex::kNone);
}

TEST_F(ObjectTableTest, ARetiredFileIsNotTakenForItsInodesNextOwner) {
  bool created = false;
  const ObjectIndex gone = open(10, &created);
  EXPECT_FALSE(table_.retire(gone, owners_.self, owners_.table)) << "it is open";
  table_.at(gone).opens.store(0);
  table_.at(gone).set(kObjectHandedOver);
  EXPECT_TRUE(table_.retire(gone, owners_.self, owners_.table));
  EXPECT_FALSE(table_.reclaim(gone, owners_.self, owners_.table))
      << "the service still has a descriptor";
  const ObjectIndex next = open(10, &created);
  EXPECT_TRUE(created);
  EXPECT_NE(next, gone);
  table_.at(gone).clear(kObjectHandedOver);
  EXPECT_TRUE(table_.reclaim(gone, owners_.self, owners_.table));
  EXPECT_EQ(table_.find(file_key(1, 10, 7)), next);
}

TEST_F(ObjectTableTest, AFullTableSaysSoAndRecovers) {
  bool created = false;
  std::uint64_t inode = 0;
  while (open(++inode, &created) != ObjectIndex::kNone) {
  }
  EXPECT_EQ(inode, kCapacity);
  for (std::uint32_t index = 1; index < kCapacity; ++index) objects_[index].opens.store(0);
  EXPECT_EQ(table_.reclaim_idle(10, owners_.self, owners_.table), 10u);
  EXPECT_NE(open(1000, &created), ObjectIndex::kNone);
}

TEST(DescriptionTable, LivesAsLongAsItsHolds) {
  auto records = std::make_unique<OpenDescription[]>(16);
  auto holds = std::make_unique<Hold[]>(16);
  DescriptionBoard board{};
  DescriptionTable table(records.get(), 16, holds.get(), 16, &board);
  const Owner parent(1, 0);
  const Owner child(2, 0);
  const DescriptionIndex index = table.create(static_cast<ObjectIndex>(5), 0);
  const HoldIndex mine = table.hold(index, parent, HoldKind::kDescription);
  const HoldIndex transit = table.hold(index, parent, HoldKind::kDescriptionInTransit);
  EXPECT_TRUE(table.transfer(transit, parent, child, index));
  EXPECT_FALSE(table.transfer(transit, parent, child, index)) << "it is the child's now";
  EXPECT_FALSE(table.release(mine, parent).last);
  EXPECT_EQ(table.release(mine, parent).kind, HoldKind::kFree) << "released once";
  const auto released = table.release(transit, child);
  EXPECT_TRUE(released.last);
  EXPECT_EQ(released.index, raw(index));
  const std::uint32_t generation = table.at(index).generation.load();
  table.destroy(index);
  EXPECT_NE(table.at(index).generation.load(), generation);
}

// A walk over 65,536 records of which none is free took 0.3 ms of every open.
TEST(DescriptionTable, AFullTableAnswersWithoutAWalkUntilSomethingIsFreed) {
  constexpr std::uint32_t kRecords = 16;
  auto records = std::make_unique<OpenDescription[]>(kRecords);
  auto holds = std::make_unique<Hold[]>(kRecords);
  DescriptionBoard board{};
  DescriptionTable table(records.get(), kRecords, holds.get(), kRecords, &board);
  const auto object = static_cast<ObjectIndex>(5);
  const Owner self(1, 0);
  DescriptionIndex last{};
  HoldIndex hold{};
  for (std::uint32_t made = 1; made < kRecords; ++made) {
    last = table.create(object, 0);
    ASSERT_NE(last, DescriptionIndex::kNone);
    hold = table.hold(last, self, HoldKind::kDescription);
    ASSERT_NE(hold, HoldIndex::kNone);
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(table.create(object, 0), DescriptionIndex::kNone);
    ASSERT_EQ(table.hold_through(object, self), HoldIndex::kNone);
    const std::uint32_t before = board.cursor.load();
    const std::uint32_t holds_before = board.hold_cursor.load();
    EXPECT_EQ(table.create(object, 0), DescriptionIndex::kNone);
    EXPECT_EQ(table.hold_through(object, self), HoldIndex::kNone);
    EXPECT_EQ(board.cursor.load(), before) << "it was walked again";
    EXPECT_EQ(board.hold_cursor.load(), holds_before) << "it was walked again";
    EXPECT_TRUE(table.release(hold, self).last);
    table.destroy(last);
    last = table.create(object, 0);
    ASSERT_NE(last, DescriptionIndex::kNone);
    hold = table.hold(last, self, HoldKind::kDescription);
    ASSERT_NE(hold, HoldIndex::kNone);
  }
}

// Numbers that a client has scribbled over lead to record 0, which is nobody's.
TEST(DescriptionTable, NumbersThatAreNoneOfItsOwnLeadNowhere) {
  constexpr std::uint32_t kRecords = 16;
  auto records = std::make_unique<OpenDescription[]>(kRecords);
  auto holds = std::make_unique<Hold[]>(kRecords);
  DescriptionBoard board{};
  DescriptionTable table(records.get(), kRecords, holds.get(), kRecords, &board);
  const Owner self(1, 0);
  const DescriptionIndex index = table.create(static_cast<ObjectIndex>(5), 0);
  const HoldIndex hold = table.hold(index, self, HoldKind::kDescription);
  holds[raw(hold)].word.fetch_or(0xfffffff0U);
  (void)table.release(hold, self);
  EXPECT_EQ(&table.at(static_cast<DescriptionIndex>(0xffffffffU)), records.get());
  EXPECT_EQ(table.at(index).references.load(), 1u);
}

TEST(RecordCursor, NeverForgetsThatTheWholeTableWasUsed) {
  constexpr std::uint32_t kCapacity = 1000;
  std::atomic<std::uint32_t> cursor{(std::uint32_t{1} << 31) - 10};
  for (int step = 0; step < 20; ++step) {
    const std::uint32_t before = cursor.load() % kCapacity;
    EXPECT_EQ(next_record(cursor, kCapacity), before);
    EXPECT_EQ(used_records(cursor, kCapacity), kCapacity);
    EXPECT_EQ(cursor.load() % kCapacity, (before + 1) % kCapacity);
  }
  EXPECT_LT(cursor.load(), 3 * kCapacity);
}

TEST(RecordCursor, RunsAcrossTheWrapAreSetBackOnce) {
  constexpr std::uint32_t kCapacity = 1000;
  std::atomic<std::uint32_t> cursor{(std::uint32_t{1} << 31) - 10};
  for (int step = 0; step < 20; ++step) {
    const std::uint32_t before = cursor.load() % kCapacity;
    EXPECT_EQ(next_records(cursor, kCapacity, 7), before);
    EXPECT_EQ(used_records(cursor, kCapacity), kCapacity);
    EXPECT_EQ(cursor.load() % kCapacity, (before + 7) % kCapacity);
  }
  EXPECT_LT(cursor.load(), 3 * kCapacity);
}

// Two processes' runs share nothing, and what a third one leaves behind is found a round later.
TEST(RecordRun, HandsOutEveryRecordOnceInARound) {
  constexpr std::uint32_t kCapacity = 10'000;
  std::atomic<std::uint32_t> cursor{0};
  RecordRun left_behind;
  const std::uint32_t first = left_behind.next(cursor, kCapacity);
  std::array<RecordRun, 2> runs;
  std::vector<unsigned> seen(kCapacity, 0);
  ++seen[first];
  for (std::uint32_t turn = 0; cursor.load() < kCapacity; ++turn)
    ++seen[runs[turn % 2].next(cursor, kCapacity)];
  EXPECT_LE(*std::max_element(seen.begin(), seen.end()), 1U);
  // Each of the two lacks the used part of a run of 128 at most.
  EXPECT_GE(std::accumulate(seen.begin(), seen.end(), 0U), kCapacity - 2 * 128);
}

TEST(RecordRun, AsksTheCursorSeldomAndALittleAtFirst) {
  constexpr std::uint32_t kCapacity = 100'000;
  std::atomic<std::uint32_t> cursor{0};
  RecordRun run;
  unsigned asked = 0;
  for (std::uint32_t before = 0, turn = 0; turn < 10'000; ++turn) {
    (void)run.next(cursor, kCapacity);
    if (turn == 2) {
      EXPECT_LE(cursor.load(), 4U) << "who opens three files takes three or four records";
    }
    asked += cursor.load() != before ? 1 : 0;
    before = cursor.load();
  }
  EXPECT_LE(asked, 10'000 / 128 + 8);
}

TEST(RecordRun, ATinyTableIsUsedRecordByRecord) {
  std::atomic<std::uint32_t> cursor{0};
  RecordRun run;
  for (std::uint32_t turn = 0; turn < 20; ++turn) EXPECT_EQ(run.next(cursor, 8), turn % 8);
}

}  // namespace
}  // namespace cairn
