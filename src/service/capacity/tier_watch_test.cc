// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/tier_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory/tiers/testing/failing_pool.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/organizer/testing/tier_filler.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kSlabsOfTier = 32;
constexpr std::uint32_t kBlocks = 8;
constexpr TierId kFailing{1};

// RAM and two file tiers; the blocks of one file are in the first of these.
class TierWatchTest : public ::testing::Test {
 protected:
  TierWatchTest() {
    MemoryShape shape;
    for (unsigned tier = 0; tier < 3; ++tier) shape.tier_bytes[tier] = kSlabsOfTier * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 64;
    memory_ = testing::make_memory(shape);
    config_.tiers = {{"first", "/the/directory"}, {"second", "/another"}};
    actor_ = testing::make_actor(memory_);
    object_ = testing::make_object(actor_, file_key(1, 2, 3));
    descriptors_.emplace(memory_);
    clients_.emplace(memory_, *descriptors_, kept_);
    accounts_.emplace(memory_, *clients_, config_);
    files_.emplace(memory_);
    flusher_.emplace(memory_, *files_, actor_.self, FlushOptions{}, [](const std::string&) {});
    watch_.emplace(TierWatch::Parts{memory_, actor_.self, config_, *flusher_, *accounts_,
                                    [this](const std::string& text) { hear(text); }});
  }
  ~TierWatchTest() override {
    watch_->stop();
    actor_.drop_leases();
  }

  void hear(const std::string& text) {
    const std::lock_guard lock(mutex_);
    warnings_ += text + "\n";
  }
  std::string warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  void fill(bool is_dirty) {
    for (std::uint32_t number = 0; number < kBlocks; ++number) {
      const BucketIndex bucket = testing::place_block(actor_, object_, kFailing, number, 1000);
      if (is_dirty) LockedBlock(actor_.worker(), bucket).turn_dirty();
    }
    actor_.drop_leases();
    blocks_before_ = actor_.object(object_).blocks.load();
    ASSERT_EQ(blocks_before_, kBlocks);
  }
  void fail(int error) {
    for (std::uint32_t block = 0; block < FailureBoard::kFailuresMax; ++block)
      memory_.tier(kFailing).note_result(TierOperation::kRead, {block * kBlockBytes, kPageBytes},
                                         error);
  }
  template <typename IsSo>
  static bool wait_until(IsSo&& is_so) {
    for (int look = 0; look < 5000 && !is_so(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is_so();
  }
  bool is_empty() const { return memory_.pool(kFailing).free_slabs() == kSlabsOfTier; }
  std::uint64_t moved(unsigned to) const {
    return memory_.journal().at(raw(kFailing), to, PlacementReason::kTierFailed).blocks.load();
  }

  NodeConfig config_;
  NodeMemory memory_;
  Actor actor_;
  ObjectIndex object_{};
  std::optional<DescriptorBudget> descriptors_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  std::optional<ClientTable> clients_;
  std::optional<AccountRegistry> accounts_;
  std::optional<StoreFiles> files_;
  std::optional<Flusher> flusher_;
  std::optional<TierWatch> watch_;
  std::mutex mutex_;
  std::string warnings_;
  std::uint32_t blocks_before_ = 0;
};

TEST_F(TierWatchTest, LeavesASoundTierAlone) {
  fill(true);
  watch_->start();
  memory_.tier(kFailing).note_result(TierOperation::kRead, {0, kPageBytes}, -EIO);
  memory_.tier(kFailing).note_result(TierOperation::kRead, {0, kPageBytes}, -EIO);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(memory_.takes_blocks(kFailing));
  EXPECT_EQ(memory_.pool(kFailing).free_slabs(), kSlabsOfTier - kBlocks);
}

TEST_F(TierWatchTest, MovesDirtyBlocksToTheNextTier) {
  fill(true);
  watch_->start();
  fail(-EIO);
  ASSERT_TRUE(wait_until([this] { return is_empty(); }));
  EXPECT_FALSE(memory_.takes_blocks(kFailing));
  EXPECT_EQ(moved(2), kBlocks);
  EXPECT_EQ(actor_.object(object_).blocks.load(), kBlocks);
  EXPECT_EQ(actor_.object(object_).dirty_blocks.load(), kBlocks);
  EXPECT_NE(warnings().find("/the/directory is out of service"), std::string::npos) << warnings();
}

TEST_F(TierWatchTest, DropsWhatTheStoreHas) {
  fill(false);
  watch_->start();
  fail(-EIO);
  ASSERT_TRUE(wait_until([this] { return is_empty(); }));
  EXPECT_EQ(moved(MoveJournal::kDropped), kBlocks);
  EXPECT_EQ(actor_.object(object_).blocks.load(), 0U);
}

TEST_F(TierWatchTest, WhatCannotBeReadStaysAndIsTriedAgain) {
  fill(true);
  std::optional<testing::FailingPool> pool(std::in_place, memory_, kFailing);
  pool->lose_from((kBlocks - 1) * kBlockBytes);
  watch_->start();
  fail(-EIO);
  ASSERT_TRUE(wait_until([this] { return moved(2) == kBlocks - 1; })) << moved(2);
  EXPECT_EQ(actor_.object(object_).dirty_blocks.load(), kBlocks);
  EXPECT_FALSE(is_empty());
  // Written anew, say: the next try finds it.
  const std::vector<std::byte> bytes(2 * kBlockBytes);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::byte* page = bytes.data() + (kPageBytes - address % kPageBytes) % kPageBytes;
  ASSERT_EQ(memory_.tier(kFailing).write_pages({(kBlocks - 1) * kBlockBytes, kBlockBytes}, page),
            0);
  EXPECT_TRUE(wait_until([this] { return is_empty(); }));
}

TEST_F(TierWatchTest, LeavesADeviceAloneThatDoesNotAnswerUntilItDoes) {
  fill(true);
  watch_->start();
  memory_.tier(kFailing).note_hang();
  // The device is sound in truth, so the first question is answered.
  EXPECT_TRUE(wait_until([this] { return is_empty(); }));
  EXPECT_FALSE(memory_.failure_board().hangs(kFailing));
}

TEST_F(TierWatchTest, GoesOnWhereAServiceThatDiedWas) {
  fill(true);
  memory_.failure_board().out_of_service.store(1U << raw(kFailing));
  watch_->start();
  EXPECT_TRUE(wait_until([this] { return is_empty(); }));
  EXPECT_EQ(warnings(), "") << "the user has been told";
}

}  // namespace
}  // namespace cairn::node
