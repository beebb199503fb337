// SPDX-License-Identifier: Apache-2.0
// What a dead service held and had half done, after its successor has taken over.
#include "service/recovery/takeover.h"

#include <cstring>
#include <thread>
#include <vector>

#include "memory/flush/flush_object.h"
#include "service/recovery/testing/left_memory.h"
#include "service/write_back/service_opens.h"

namespace cairn::node {
namespace {

using testing::LeftMemory;

class TakeoverTest : public LeftMemory {};

TEST_F(TakeoverTest, ItsNameDiesAndTheNextOneLives) {
  const Owner dead = service();
  const Takeover taken = taken_over();
  EXPECT_FALSE(memory_.owners().is_alive(dead));
  EXPECT_TRUE(memory_.owners().is_alive(taken.service));
  EXPECT_EQ(taken.service, service());
  EXPECT_TRUE(memory_.is_served());
  EXPECT_EQ(memory_.slot(ClientSlot::kOfService).pid.load(), ::getpid());
}

// A waiter that found out that the service is gone, before another one followed.
TEST_F(TakeoverTest, AServiceThatCountedAsDeadForGoodIsFollowed) {
  memory_.owners().advance(ClientSlot::kOfService);
  EXPECT_FALSE(memory_.is_served());
  const Takeover taken = taken_over();
  EXPECT_TRUE(memory_.is_served());
  EXPECT_EQ(taken.service.generation(), 2);
}

TEST_F(TakeoverTest, BlocksThatItHadLockedAreAsTheyWere) {
  write(0, 'a');
  write(1, 'b');
  BlockProbe(block(0)).lock_as(service());
  std::thread waiter([this] {
    Actor other = actor_of(Owner(3, 0));
    std::string bytes(8, 'c');
    EXPECT_EQ(write_object(access_of(other), 0, bytes.data(), bytes.size()), 8);
    other.drop_leases();
  });
  const Takeover taken = taken_over();
  waiter.join();
  EXPECT_LE(taken.swept.blocks_unlocked, 1U) << "the waiter may have been first";
  EXPECT_FALSE(BlockDescriptor::is_locked(block(0).word()));
  EXPECT_TRUE(is_in_dirty_map(bucket(0)));
  EXPECT_TRUE(is_in_dirty_map(bucket(1)));
  EXPECT_EQ(object().dirty_blocks.load(), 2U);
  EXPECT_TRUE(reads(1, 'b'));
}

TEST_F(TakeoverTest, ALockedBlockIsUnlockedWithoutAWaiter) {
  write(0, 'a');
  BlockProbe(block(0)).lock_as(service());
  const Takeover taken = taken_over();
  EXPECT_EQ(taken.swept.blocks_unlocked, 1U);
  EXPECT_FALSE(BlockDescriptor::is_locked(block(0).word()));
  EXPECT_TRUE(reads(0, 'a'));
}

TEST_F(TakeoverTest, WhatItWasStoringIsDirtyAndCanBeStored) {
  write(0, 'a');
  Actor dead = actor_of(service());
  LockedBlock locked(dead.worker(), bucket(0));
  // Its end is never called: the claim stays where it is.
  alignas(ClaimedBlock) std::byte place[sizeof(ClaimedBlock)];
  new (place) ClaimedBlock(static_cast<LockedBlock&&>(locked).begin_flush(kAllPages));
  ASSERT_EQ(block(0).state(), BlockState::kFlushing);
  const Takeover taken = taken_over();
  EXPECT_EQ(taken.locks, 1U) << "the claim";
  EXPECT_FALSE(static_cast<bool>(block(0).claimant()));
  EXPECT_EQ(block(0).dirty_pages(), kAllPages);
  EXPECT_TRUE(is_in_dirty_map(bucket(0)));
  Actor next = actor_of(taken.service);
  EXPECT_EQ(flush_object(next, FlushRequest(index_, *file_)).bytes, kBlockBytes);
  EXPECT_EQ(object().dirty_blocks.load(), 0U);
  EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), 0U);
}

// The dead service had heard of the writer's death, and not come to more.
TEST_F(TakeoverTest, WhatAWriterLeftHalfWrittenCountsAsChanged) {
  write(0, 'a');
  ClientSlot& slot = memory_.slot(kClient);
  slot.shards[0].writing.store(raw(index_));
  slot.state.store(SlotState::kActive);
  (void)taken_over();
  EXPECT_EQ(object().cut_writes.load(), 0U) << "it is alive";
  slot.state.store(SlotState::kReaping);
  (void)taken_over();
  EXPECT_NE(object().cut_writes.load(), 0U);
}

TEST_F(TakeoverTest, ItsLeasesAndUnpublishedBucketsAreFreeAgain) {
  const std::uint32_t free_in_memory = pool().free_slabs();
  BucketPool& below = memory_.pool(TierId{1});
  const std::uint32_t free_below = below.free_slabs();
  Actor dead = actor_of(service());
  Lease::Fresh fresh;
  (void)dead.leases[0].take(pool(), {SizeClass::k64KiB, 4}, dead.worker(), &fresh).leave_locked();
  (void)dead.leases[0].take(pool(), {SizeClass::k4KiB, 1}, dead.worker(), &fresh).leave_locked();
  // A block on its way down.
  (void)dead.leases[1].take(below, {SizeClass::k64KiB, 1}, dead.worker(), &fresh).leave_locked();
  ASSERT_LT(pool().free_slabs(), free_in_memory);
  const Takeover taken = taken_over();
  EXPECT_EQ(taken.swept.buckets_freed, 3U);
  EXPECT_EQ(pool().free_slabs(), free_in_memory);
  EXPECT_EQ(pool().count_free_slabs(), free_in_memory);
  EXPECT_EQ(below.free_slabs(), free_below);
  EXPECT_EQ(pool().leased_slabs() + below.leased_slabs(), 0U);
}

TEST_F(TakeoverTest, AllItsLocksAreReleased) {
  const DescriptionIndex description = memory_.descriptions().create(index_, O_RDWR);
  std::vector<OwnedLock*> locks = {&object().lock, &object().append_lock,
                                   &memory_.extend_lock(index_),
                                   &memory_.descriptions().at(description).offset_lock};
  locks.push_back(&table<HashLine>(Table::kObjectLines)[1].lock);
  locks.push_back(&table<HashLine>(Table::kBlockLines)[count_of(Table::kBlockLines) - 1].lock);
  const Owner dead = service();
  for (OwnedLock* lock : locks) ASSERT_TRUE(lock->try_lock(dead));
  EXPECT_EQ(taken_over().locks, locks.size());
  for (const OwnedLock* lock : locks) EXPECT_FALSE(static_cast<bool>(lock->holder()));
}

TEST_F(TakeoverTest, QuestionsThatItHadTakenAreAnsweredByTheNext) {
  const RequestRing& ring = memory_.requests();
  const auto place = ring.ask(client_.self, {21, 2});
  const auto other = ring.ask(client_.self, {1, 2});
  ASSERT_TRUE(place && other);
  unsigned taken_by_dead = 0;
  ring.take(memory_.owners(), [&](const RequestRing::Taken&) { ++taken_by_dead; });
  ASSERT_EQ(taken_by_dead, 2U);
  ring.close();
  EXPECT_EQ(taken_over().requests, 2U);
  ring.take(memory_.owners(), [&](const RequestRing::Taken& taken) {
    ring.answer(taken.place, static_cast<std::int32_t>(taken.question[0] + taken.question[1]),
                memory_.owners());
  });
  std::int32_t result = 0;
  EXPECT_EQ(ring.await(*place, memory_.owners(), 1, &result), RequestRing::Waited::kAnswered);
  EXPECT_EQ(result, 23);
  EXPECT_EQ(ring.await(*other, memory_.owners(), 1, &result), RequestRing::Waited::kAnswered);
  EXPECT_EQ(ring.used_slots(), 0U);
  EXPECT_TRUE(ring.ask(client_.self, {1, 1})) << "the ring is open again";
}

TEST_F(TakeoverTest, RequestsOfTheDeadAndOfNobodyAreFreed) {
  const RequestRing& ring = memory_.requests();
  ASSERT_TRUE(ring.ask(Owner(5, 0), {1, 2}));
  ring.take(memory_.owners(), [](const RequestRing::Taken&) {});
  memory_.owners().advance(5);
  auto* slots = table<RequestRing::Table>(Table::kRequests);
  slots->slots[3].word.store(RequestWord(7U << Owner::kBits).bits() | client_.self.bits());
  (void)taken_over();
  EXPECT_EQ(ring.used_slots(), 0U);
}

// It writes beside the set that is in force.
TEST_F(TakeoverTest, ADeathInsideAPublishLeavesTheRulesThatWere) {
  RuleRecord rule;
  std::strcpy(rule.pattern, "*.dat");
  rule.properties = RuleRecord::kPinned;
  ObjectHandling said;
  said.pinned = true;
  rule.handling = said.bits();
  memory_.rules().publish({&rule, 1});
  auto* header = reinterpret_cast<RuleTableHeader*>(table<RuleTable::Bytes>(Table::kRules));
  auto* records = reinterpret_cast<RuleRecord*>(header + 1);
  const std::uint32_t next = header->published.load() + 1;
  std::memset(static_cast<void*>(records + next % 2 * RuleTable::kRulesMax), 0x5a,
              2 * sizeof(RuleRecord));
  header->counts[next % 2].store(2);
  (void)taken_over();
  RuleQuestion question;
  question.path = "/a/b.dat";
  EXPECT_TRUE(memory_.rules().decide(question, {}).pinned);
  memory_.rules().publish({});
  EXPECT_FALSE(memory_.rules().decide(question, {}).pinned);
}

TEST_F(TakeoverTest, WhatItDidAboutAFileHasEnded) {
  object().mark(kMarkBeingFlushed, true);
  object().mark(kMarkFetchedFrom, true);
  (void)taken_over();
  EXPECT_FALSE(object().is_marked(kMarkBeingFlushed)) << "closes would leave the times to nobody";
  EXPECT_FALSE(object().is_marked(kMarkFetchedFrom));
}

TEST_F(TakeoverTest, TimesThatItWasSettingAreSetAgain) {
  write(0, 'a');
  ASSERT_TRUE(object().has(kObjectTimesDirty));
  // As settle_store() begins.
  ASSERT_TRUE(object().lock.try_lock(service()));
  object().mark(kMarkBeingSettled, true);
  object().clear(kObjectTimesDirty);
  EXPECT_EQ(taken_over().unsettled, 1U);
  EXPECT_TRUE(object().has(kObjectTimesDirty));
  EXPECT_FALSE(object().is_marked(kMarkBeingSettled));
  ASSERT_EQ(flush_object(client_, FlushRequest(index_, *file_)).error, 0);
  ASSERT_EQ(settle_store(client_, index_, *file_), 0);
  EXPECT_FALSE(object().is_marked(kMarkBeingSettled)) << "a settling that ends leaves none";
  EXPECT_FALSE(object().has(kObjectTimesDirty));
}

TEST_F(TakeoverTest, AClientThatSettlesAFileGoesOn) {
  ASSERT_TRUE(object().lock.try_lock(client_.self));
  object().mark(kMarkBeingSettled, true);
  EXPECT_EQ(taken_over().unsettled, 0U);
  EXPECT_TRUE(object().is_marked(kMarkBeingSettled));
  object().lock.unlock(client_.self);
}

TEST_F(TakeoverTest, WritersThroughTheKernelHearOfAnEndThatItMayHaveMade) {
  ASSERT_TRUE(object().lock.try_lock(service()));
  const std::uint32_t before = object().shape_sequence.load();
  (void)taken_over();
  EXPECT_EQ(object().shape_sequence.load(), before + Object::kThroughEnded);
}

TEST_F(TakeoverTest, FilesThatItHadOpenedForItselfAreClosed) {
  Actor dead = actor_of(service());
  StoreStatus status;
  ASSERT_EQ(store_status(fd_, &status), 0);
  for (int count = 0; count < 2; ++count) ASSERT_EQ(open_for_service(dead, *file_, status), index_);
  ASSERT_EQ(open_for_service(dead, *file_, status), index_);
  (void)close_for_service(access_of(dead));
  ASSERT_EQ(object().opens.load(), 3U);
  EXPECT_EQ(taken_over().opens, 2U);
  EXPECT_EQ(object().opens.load(), 1U) << "the client's";
  EXPECT_EQ(object().service_opens.load(), 0U);
}

TEST_F(TakeoverTest, ASlabWordOfNobodyFollowsItsBlocks) {
  write(0, 'a');
  write(1, 'b');
  client_.drop_leases();
  const std::uint32_t free = pool().free_slabs();
  auto* slabs = table<std::atomic<std::uint64_t>>(Table::kSlabs);
  const std::uint32_t of_block = raw(bucket(0)) - 1;
  slabs[of_block].store(~std::uint64_t{0});
  slabs[kSlabs - 1].store(std::uint64_t{3} << 32);
  EXPECT_GE(taken_over().mended, 2U);
  EXPECT_TRUE(pool().is_taken(bucket(0)));
  EXPECT_EQ(slabs[kSlabs - 1].load(), 0U);
  EXPECT_EQ(pool().count_free_slabs(), free);
  EXPECT_EQ(pool().free_slabs(), free);
  EXPECT_TRUE(reads(0, 'a'));
  EXPECT_TRUE(reads(1, 'b'));
}

TEST_F(TakeoverTest, NoPoolGivesOutABucketThatABlockIsIn) {
  write(0, 'a');
  client_.drop_leases();
  auto* slabs = table<std::atomic<std::uint64_t>>(Table::kSlabs);
  slabs[raw(bucket(0)) - 1].store(0);
  EXPECT_GE(taken_over().mended, 1U);
  EXPECT_TRUE(pool().is_taken(bucket(0)));
  for (std::uint32_t number = 1; number < kSlabs; ++number) write(number, 'b');
  EXPECT_TRUE(reads(0, 'a'));
}

TEST_F(TakeoverTest, ABlockThatTheDirectoryHasLostIsFoundAgain) {
  write(0, 'a');
  auto* lines = table<HashLine>(Table::kBlockLines);
  const std::uint32_t wanted = raw(bucket(0));
  for (std::uint32_t line = 0; line < count_of(Table::kBlockLines); ++line) {
    for (auto& slot : lines[line].slots) {
      if (static_cast<std::uint32_t>(slot.load()) == wanted) slot.store(0);
    }
  }
  ASSERT_EQ(bucket(0), BucketIndex::kNone);
  EXPECT_GE(taken_over().mended, 1U);
  EXPECT_EQ(raw(bucket(0)), wanted);
  EXPECT_TRUE(reads(0, 'a'));
}

TEST_F(TakeoverTest, SlotsOfTheDirectoryThatNameNoBlockAreEmptied) {
  write(0, 'a');
  auto* lines = table<HashLine>(Table::kBlockLines);
  std::vector<std::atomic<std::uint64_t>*> strays;
  for (auto& slot : lines[0].slots) {
    if (slot.load() == 0 && strays.size() < 2) strays.push_back(&slot);
  }
  ASSERT_EQ(strays.size(), 2U);
  strays[0]->store(std::uint64_t{7} << 32 | 0xfffffff0U);
  strays[1]->store(std::uint64_t{7} << 32 | (kSlabs - 1));  // a bucket that no block is in
  EXPECT_EQ(taken_over().mended, 2U);
  for (const auto* stray : strays) EXPECT_EQ(stray->load(), 0U);
  EXPECT_TRUE(reads(0, 'a'));
}

TEST_F(TakeoverTest, TheFlusherFindsWhatItsMapHasLost) {
  write(0, 'a');
  write(1, 'b');
  auto* map = table<std::atomic<std::uint64_t>>(Table::kDirtyMap);
  for (std::uint32_t word = 0; word < count_of(Table::kDirtyMap); ++word) map[word].store(0);
  object().dirty_low.store(1);
  (void)taken_over();
  EXPECT_TRUE(is_in_dirty_map(bucket(0)));
  EXPECT_TRUE(is_in_dirty_map(bucket(1)));
  EXPECT_EQ(flush_object(client_, FlushRequest(index_, *file_)).bytes, 2 * kBlockBytes);
}

TEST_F(TakeoverTest, AStateThatIsNoneFollowsThePages) {
  write(0, 'a');
  write(1, 'b');
  BlockProbe(block(0)).set_state(static_cast<BlockState>(77));
  BlockProbe(block(1)).set_state(BlockState::kClean);
  EXPECT_EQ(taken_over().mended, 2U);
  EXPECT_EQ(block(0).state(), BlockState::kDirty);
  EXPECT_EQ(block(1).state(), BlockState::kDirty);
  EXPECT_EQ(object().dirty_blocks.load(), 2U);
  EXPECT_EQ(flush_object(client_, FlushRequest(index_, *file_)).bytes, 2 * kBlockBytes);
  EXPECT_EQ(object().dirty_blocks.load(), 0U);
}

// It had counted a block that it did not write down, or had written one down as stored.
TEST_F(TakeoverTest, CountsThatItLeftTooHighAreCorrected) {
  write(0, 'a');
  object().dirty_blocks.fetch_add(1);
  object().blocks.fetch_add(2);
  memory_.flusher_board().dirty_bytes.fetch_add(kBlockBytes);
  memory_.fetches().note_fetched(3, kBlockBytes);
  EXPECT_EQ(taken_over().corrected, 4U);
  EXPECT_EQ(object().dirty_blocks.load(), 1U);
  EXPECT_EQ(object().blocks.load(), 1U);
  EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), kBlockBytes);
  EXPECT_EQ(memory_.fetches().unused_bytes(), 0U);
}

TEST_F(TakeoverTest, ACountStaysTooHighWhileSomebodyIsAtWork) {
  write(0, 'a');
  object().dirty_blocks.fetch_add(1);
  BlockProbe(block(0)).lock_as(client_.self);
  EXPECT_EQ(taken_over().corrected, 0U);
  EXPECT_EQ(object().dirty_blocks.load(), 2U);
  BlockProbe(block(0)).end_lock_as(client_.self);
}

TEST_F(TakeoverTest, BoardsSayWhatNoServiceHasSaidYet) {
  PlacementBoard& placement = memory_.placement_board();
  placement.plans[1].words[2].store(UINT64_MAX);
  memory_.event_board().wanted.store(EventLevel::kWrites);
  memory_.event_board().opens_are_urgent.store(1);
  memory_.device_board().read_around[1].store(255);
  memory_.failure_board().out_of_service.store(0xff);
  memory_.organizer_board().reads_stay_above.store(1);
  memory_.warmer_board().warm_slabs.store(kSlabs + 7);
  TierAccounts& accounts = memory_.accounts().tiers[0];
  accounts.accounts[5].reserved.store(3);  // and its bit is not set
  EXPECT_GE(taken_over().mended, 4U);
  EXPECT_EQ(placement.plans[1].at(17), TierId::kMemory);
  EXPECT_FALSE(memory_.event_board().wants(EventLevel::kReads));
  EXPECT_EQ(memory_.event_board().opens_are_urgent.load(), 0U);
  EXPECT_EQ(memory_.device_board().read_around[1].load(), 0U);
  EXPECT_EQ(memory_.failure_board().out_of_service.load(), (1U << memory_.tier_count()) - 2);
  EXPECT_EQ(memory_.organizer_board().reads_stay_above.load(), 0U);
  EXPECT_EQ(memory_.warmer_board().warm_slabs.load(), kSlabs);
  EXPECT_EQ(accounts.held_back(), 3U);
  EXPECT_EQ(memory_.accounts().reserved_tiers.load(), 1U);
}

TEST_F(TakeoverTest, HoldsOfDeadClientsStayAndThoseOfNobodyGo) {
  DescriptionTable& descriptions = memory_.descriptions();
  const DescriptionIndex description = descriptions.create(index_, O_RDWR);
  const HoldIndex dead = descriptions.hold(description, Owner(4, 0), HoldKind::kDescription);
  const HoldIndex alive = descriptions.hold(description, client_.self, HoldKind::kDescription);
  memory_.owners().advance(4);
  auto* holds = table<Hold>(Table::kHolds);
  holds[raw(alive) + 1].word.store(std::uint64_t{6} << 61 | 77);
  memory_.descriptions().hold_through(index_, Owner());  // the word of nobody
  const Takeover taken = taken_over();
  EXPECT_EQ(taken.holds, 2U);
  EXPECT_EQ(descriptions.view(dead).owner, Owner(4, 0)) << "the reaper's to release";
  EXPECT_EQ(descriptions.view(alive).owner, client_.self);
}

TEST_F(TakeoverTest, ASecondOneFindsNothing) {
  write(0, 'a');
  Actor dead = actor_of(service());
  Lease::Fresh fresh;
  (void)dead.leases[0].take(pool(), {SizeClass::k64KiB, 4}, dead.worker(), &fresh).leave_locked();
  BlockProbe(block(0)).lock_as(service());
  ASSERT_TRUE(object().lock.try_lock(service()));
  object().dirty_blocks.fetch_add(1);
  EXPECT_NE(taken_over().locks, 0U);
  const Takeover second = taken_over();
  EXPECT_EQ(second.swept.blocks_unlocked + second.swept.buckets_freed + second.swept.slabs, 0U);
  EXPECT_EQ(second.locks + second.requests + second.holds + second.mended, 0U);
  EXPECT_EQ(second.corrected + second.unsettled + second.opens, 0U);
  EXPECT_TRUE(reads(0, 'a'));
}

// More often than there are generations.
TEST_F(TakeoverTest, ManyServicesOneAfterTheOther) {
  write(0, 'a');
  client_.drop_leases();
  const std::uint32_t free = pool().free_slabs();
  for (unsigned death = 0; death < 300; ++death) {
    const Owner dead = service();
    ASSERT_TRUE(memory_.is_served());
    Actor actor = actor_of(dead);
    Lease::Fresh fresh;
    (void)actor.leases[0]
        .take(pool(), {SizeClass::k64KiB, 2}, actor.worker(), &fresh)
        .leave_locked();
    BlockProbe(block(0)).lock_as(dead);
    ASSERT_TRUE(object().append_lock.try_lock(dead));
    const auto place = memory_.requests().ask(client_.self, {death, 1});
    ASSERT_TRUE(place);
    memory_.requests().take(memory_.owners(), [](const RequestRing::Taken&) {});
    const Takeover taken = taken_over();
    ASSERT_FALSE(memory_.owners().is_alive(dead)) << death;
    ASSERT_EQ(taken.swept.blocks_unlocked, 1U) << death;
    ASSERT_EQ(taken.requests, 1U) << death;
    ASSERT_EQ(pool().free_slabs(), free) << death;
    ASSERT_FALSE(static_cast<bool>(object().append_lock.holder()));
    memory_.requests().take(memory_.owners(), [this](const RequestRing::Taken& asked) {
      memory_.requests().answer(asked.place, 1, memory_.owners());
    });
    std::int32_t result = 0;
    ASSERT_EQ(memory_.requests().await(*place, memory_.owners(), 1, &result),
              RequestRing::Waited::kAnswered);
  }
  EXPECT_TRUE(reads(0, 'a'));
}

TEST_F(TakeoverTest, MemoryOfAnotherShapeIsLeftAlone) {
  const Owner before = service();
  auto* identity = table<NodeIdentity>(Table::kIdentity);
  const std::uint64_t digest = identity->layout_digest;
  identity->layout_digest ^= 1;
  EXPECT_EQ(take_over(memory_).status().code(), StatusCode::kIncompatible);
  identity->layout_digest = digest;
  ++identity->shape.clients_max;
  EXPECT_EQ(take_over(memory_).status().code(), StatusCode::kIncompatible);
  EXPECT_EQ(service(), before);
}

}  // namespace
}  // namespace cairn::node
