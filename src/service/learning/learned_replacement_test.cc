// SPDX-License-Identifier: Apache-2.0
// Which blocks leave, and whether they are worth a place below, by what was told of their uses.
#include "service/learning/learned_replacement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "memory/tiers/testing/test_memory.h"
#include "service/learning/admission_costs.h"

namespace cairn::node {
namespace {

// In segments of eight blocks, 64 and 192.
constexpr std::uint32_t kBlocks = 512;
constexpr std::uint32_t kBlocksBelow = 1536;
constexpr auto kBelow = static_cast<TierId>(1);

class LearnedReplacementTest : public ::testing::Test {
 protected:
  LearnedReplacementTest() {
    MemoryShape shape = testing::memory_only(kBlocks * kBlockBytes);
    shape.tier_bytes[1] = kBlocksBelow * kBlockBytes;
    memory_ = testing::make_memory(shape);
    object_ = testing::make_object(testing::make_actor(memory_), file_key(1, 2, 3));
    learned_ = std::make_unique<LearnedReplacement>(memory_, "ws-plus", 10);
    table_ = std::make_unique<StreamTable>(memory_);
  }
  void by_value() {
    learned_->admit_by_value([](TierId) { return AdmissionCosts{8e-3, 0.2e-3}; });
  }
  BlockView view(std::uint32_t block) const {
    BlockView view;
    view.bucket = static_cast<BucketIndex>(block);
    view.object = object_;
    view.number = static_cast<BlockNumber>(block);
    view.bytes = kBlockBytes;
    return view;
  }
  void read(std::uint32_t first, std::uint32_t blocks) {
    for (std::uint32_t block = first; block < first + blocks; ++block) {
      ToldAccess told;
      told.event.owner = memory_.owners().current(1);
      told.event.object = object_;
      told.event.stream = static_cast<DescriptionIndex>(9);
      told.event.kind = AccessKind::kMiss;
      told.event.offset = std::uint64_t{block} * kBlockBytes;
      told.event.length = kBlockBytes;
      table_->follow({&told, 1});
      learned_->on_accesses({&told, 1});
      if (future_) future_->on_accesses({&told, 1});
      table_->forget_ended();
    }
  }
  bool admits(std::uint32_t block) const {
    return learned_->admits(view(block), TierId::kMemory, kBelow);
  }
  bool reads_stay_above() const { return memory_.organizer_board().reads_stay_above.load() != 0; }

  NodeMemory memory_;
  ObjectIndex object_{};
  std::unique_ptr<StreamTable> table_;
  std::unique_ptr<KnownFutureTable> future_;
  std::unique_ptr<LearnedReplacement> learned_;
};

TEST_F(LearnedReplacementTest, EverythingIsAdmittedWhileNothingIsKnown) {
  by_value();
  EXPECT_TRUE(admits(0));
  read(0, kBlocks);
  EXPECT_TRUE(admits(0));
  EXPECT_TRUE(admits(1'000'000));
  EXPECT_FALSE(reads_stay_above());
}

TEST_F(LearnedReplacementTest, AScanIsNotAdmittedForLong) {
  by_value();
  read(0, 2 * kBlocks);
  EXPECT_FALSE(admits(0));
  EXPECT_FALSE(admits(2 * kBlocks)) << "nor what goes on with it";
  EXPECT_TRUE(reads_stay_above());
}

TEST_F(LearnedReplacementTest, WithoutJudgingByValueAScanIsAdmitted) {
  read(0, 8 * kBlocks);
  EXPECT_TRUE(admits(0));
  EXPECT_FALSE(reads_stay_above());
}

TEST_F(LearnedReplacementTest, ALoopThatFitsBelowIsAdmitted) {
  by_value();
  for (int round = 0; round < 12; ++round) {
    if (round >= 2) {
      for (std::uint32_t block = 0; block < kBlocks * 3 / 2; block += 8)
        ASSERT_TRUE(admits(block)) << "round " << round << ", " << block;
      EXPECT_FALSE(reads_stay_above());
    }
    read(0, kBlocks * 3 / 2);
  }
}

TEST_F(LearnedReplacementTest, OfAKnownOrderTheLastToBeWantedLeavesFirst) {
  const std::string list = "/var/tmp/cairn-learned-list-" + std::to_string(::getpid());
  const std::string said = "/var/tmp/cairn-learned-said-" + std::to_string(::getpid());
  std::ofstream(list) << "0\n5\n3\n7\n1\n5\n";
  std::ofstream(said) << "/data/packed list " << list << " items=8 item-bytes=64K\n";
  auto orders = DeclaredOrders::load(said, {});
  ASSERT_TRUE(orders.is_ok()) << orders.status().message();
  future_ = std::make_unique<KnownFutureTable>(memory_, *table_);
  future_->follow(&orders.value(), [](const ToldAccess&) { return std::string("/data/packed"); });
  learned_->set_future(future_.get());
  by_value();
  read(0, 1);
  // Nothing is known of the other file, and the expert does not hold it.
  BlockView other = view(6);
  other.object = static_cast<ObjectIndex>(raw(object_) + 1);
  other.recency_ms = 900;
  std::vector<BlockView> views = {view(1), view(0), view(3), other, view(5)};
  ReplacementRequest request;
  request.now_ms = 1000;
  request.bytes_wanted = 3 * kBlockBytes;
  EXPECT_EQ(learned_->choose(views, request), 3U);
  const std::vector<BlockNumber> left = {views[0].number, views[1].number, views[2].number,
                                         views[3].number, views[4].number};
  const auto number = [](std::uint32_t block) { return static_cast<BlockNumber>(block); };
  EXPECT_EQ(left, (std::vector{number(0), number(6), number(1), number(3), number(5)}));
  EXPECT_FALSE(learned_->admits(views[0], TierId::kMemory, kBelow)) << "it is not read again";
  EXPECT_TRUE(learned_->admits(views[2], TierId::kMemory, kBelow));
  // Once what is wanted sooner has to leave the tier below, it has no place there.
  request.tier = kBelow;
  std::vector<BlockView> below = {view(3)};
  EXPECT_EQ(learned_->choose(below, request), 1U);
  EXPECT_FALSE(learned_->admits(views[2], TierId::kMemory, kBelow));
  EXPECT_TRUE(learned_->admits(views[4], TierId::kMemory, kBelow));
  ::unlink(list.c_str());
  ::unlink(said.c_str());
}

TEST_F(LearnedReplacementTest, FilesThatAreGoneAreForgotten) {
  const auto segments = [this] { return learned_->report(TierId::kMemory).segments; };
  const ObjectIndex kept = object_;
  const Actor actor = testing::make_actor(memory_);
  const ObjectIndex gone = testing::make_object(actor, file_key(1, 2, 4));
  object_ = gone;
  read(0, 80);
  memory_.objects().at(gone).set(kObjectUnlinked);
  object_ = kept;
  for (int round = 0; round < 600; ++round) read(0, 80);
  EXPECT_EQ(segments(), 20U) << "somebody has it open still";
  memory_.objects().at(gone).opens.store(0);
  for (int round = 0; round < 600; ++round) read(0, 80);
  EXPECT_EQ(segments(), 10U);
}

TEST_F(LearnedReplacementTest, ARecordOfAnotherFileIsNotTakenForTheOldOne) {
  by_value();
  read(0, 80);
  memory_.objects().at(object_).inode = 77;
  read(800, 8);
  EXPECT_EQ(learned_->report(TierId::kMemory).segments, 1U);
  EXPECT_EQ(learned_->report(kBelow).segments, 1U);
  read(0, 80);
  EXPECT_EQ(learned_->report(TierId::kMemory).misses, 21U) << "nothing of it was known";
}

TEST(AdmissionCosts, AreThoseOfTheDevices) {
  using profiler::DeviceClass;
  const auto disk = profiler::tier_figures(DeviceClass::kHdd);
  const auto nvme = profiler::tier_figures(DeviceClass::kNvme);
  const AdmissionCosts costs = admission_costs(disk, nvme);
  const double disk_read = 8e-3 + kBlockBytes / 150e6;
  const double nvme_read = 90e-6 + kBlockBytes / 2e9;
  EXPECT_NEAR(costs.seconds_saved, disk_read - nvme_read, 1e-9);
  EXPECT_NEAR(costs.seconds_to_write, 2 * kBlockBytes / 1e9, 1e-9) << "flash wears";
  // When the devices are equal, the tier counts as the better one.
  EXPECT_NEAR(admission_costs(disk, disk).seconds_saved, disk_read, 1e-9);
  EXPECT_NEAR(admission_costs(disk, disk).seconds_to_write, kBlockBytes / 140e6, 1e-9);
}

}  // namespace
}  // namespace cairn::node
