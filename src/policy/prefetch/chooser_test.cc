// SPDX-License-Identifier: Apache-2.0
// Which predictor is chosen, and what that is worth: the patterns that programs read by, in the
// model of policy/prefetch/testing/prefetch_model.h.
#include "policy/prefetch/chooser.h"

#include <gtest/gtest.h>

#include "policy/prefetch/testing/prefetch_model.h"

namespace cairn {
namespace {

using testing::AccessPattern;
using testing::PrefetchResult;

constexpr std::int64_t kReadsOfPattern = 20'000;
// What not knowing which predictor to ask may cost against the best one, in shares of the reads.
constexpr double kLossMax = 0.03;
// For an array of a few tiles, most of which are at an edge and have to be learned each.
constexpr double kCoverageOfAShapeMin = 0.80;
constexpr double kAccuracyOfAShapeMin = 0.80;

unsigned index_of(std::string_view name) {
  unsigned index = 0;
  while (name != kPredictorMakers[index].name) ++index;
  return index;
}

std::string text_of(const std::string& name, const PrefetchResult& result) {
  return name + ": coverage " + std::to_string(result.coverage) + ", late " +
         std::to_string(result.late) + ", accuracy " + std::to_string(result.accuracy) +
         ", waste " + std::to_string(result.waste);
}

DeclaredOrder order_of(const AccessPattern& pattern) {
  std::vector<BlockRun> runs;
  for (const testing::StreamRead& read : pattern.reads) runs.push_back(read.run);
  return std::make_shared<const std::vector<BlockRun>>(std::move(runs));
}

// A predictor that knows how far behind the one before each read begins, a distance that never
// comes again, and is right so often in a hundred times.
class SteppingSupply final : public PredictorSupply {
 public:
  static constexpr std::array<std::int64_t, 4> kSteps = {3, 17, 5, 1031};

  explicit SteppingSupply(int right_percent) : right_percent_(right_percent) {}
  const char* name() const override { return "stepping"; }
  std::unique_ptr<Predictor> make(const std::int64_t& file_blocks) override {
    return std::make_unique<Stepping>(right_percent_, file_blocks);
  }

 private:
  class Stepping final : public Predictor {
   public:
    Stepping(int right_percent, const std::int64_t& file_blocks)
        : right_percent_(right_percent), file_blocks_(file_blocks) {}
    const char* name() const override { return "stepping"; }
    void observe(BlockRun run) override {
      last_ = run.first;
      ++reads_;
    }
    std::size_t predict(std::span<BlockRun> next) const override {
      std::int64_t block = last_;
      for (std::size_t at = 0; at < next.size(); ++at) {
        const std::size_t read = reads_ + at;
        block = (block + kSteps[read % 4] + static_cast<std::int64_t>(read * read)) % file_blocks_;
        const bool is_right = static_cast<int>(read * 37 % 100) < right_percent_;
        next[at] = BlockRun{is_right ? block : block + file_blocks_, 1};
      }
      return next.size();
    }

   private:
    const int right_percent_;
    const std::int64_t& file_blocks_;
    std::int64_t last_ = 0;
    std::size_t reads_ = 0;
  };

  const int right_percent_;
};

class ChooserTest : public ::testing::Test {
 protected:
  void read(const std::vector<std::int64_t>& blocks) {
    for (const std::int64_t block : blocks) chooser_.observe(BlockRun{block, 1});
  }
  void read_strided(std::int64_t from, std::int64_t delta, int reads) {
    for (int at = 0; at < reads; ++at) chooser_.observe(BlockRun{from + at * delta, 1});
  }
  Chooser::Choice choose() {
    next_.fill(BlockRun{});
    return chooser_.predict(next_);
  }

  NodeKnowledge node_;
  Chooser chooser_{node_.file(1), node_};
  std::array<BlockRun, 8> next_;
};

// Under the same gate as all others, and under a number of its own.
TEST_F(ChooserTest, ASuppliedPredictorIsAskedWhileItIsRight) {
  for (const int right_percent : {100, 70, 45, 20}) {
    SteppingSupply supply(right_percent);
    NodeKnowledge node;  // that has not heard of the order before
    Chooser chooser(node.file(1), node, &supply);
    constexpr std::int64_t kBlocks = 100'003;
    chooser.set_file_blocks(kBlocks);
    std::int64_t block = 0;
    unsigned asked = 0;
    constexpr std::size_t kReads = 400;
    for (std::size_t read = 0; read < kReads; ++read) {
      block = (block + SteppingSupply::kSteps[read % 4] + static_cast<std::int64_t>(read * read)) %
              kBlocks;
      chooser.observe(BlockRun{block, 1});
      asked += chooser.predict(next_).predictor == Chooser::kSupplied ? 1 : 0;
    }
    if (right_percent >= 70) {
      EXPECT_GE(asked, kReads * 8 / 10) << right_percent;
    } else {
      EXPECT_LE(asked, kReads / 10) << right_percent;
    }
  }
}

TEST_F(ChooserTest, NobodyIsAskedAboutAStreamWithoutReads) {
  EXPECT_EQ(choose().count, 0u);
  EXPECT_EQ(choose().predictor, Chooser::kNobody);
}

TEST_F(ChooserTest, FollowsAStrideFromTheFourthRead) {
  read({100, 110, 120});
  EXPECT_EQ(choose().count, 0u);
  read({130});
  ASSERT_EQ(choose().count, 8u);
  EXPECT_EQ(next_[0], (BlockRun{140, 1}));
  EXPECT_EQ(next_[7], (BlockRun{210, 1}));
}

TEST_F(ChooserTest, NoPredictionAfterThePatternHasEnded) {
  read_strided(0, 5, 100);
  EXPECT_NE(choose().count, 0u);
  RandomSource random(3);
  for (int at = 0; at < 20; ++at) read({random.below(1U << 20)});
  EXPECT_EQ(choose().count, 0u);
}

TEST_F(ChooserTest, TellsWhoIsAsked) {
  for (std::int64_t row = 0; row < 20; ++row) read_strided(1000 * row, 3, 13);
  EXPECT_EQ(choose().predictor, index_of("loop-nest"));
  EXPECT_GT(chooser_.score(index_of("loop-nest")), 0.9F);
  EXPECT_LT(chooser_.score(index_of("stride")), 0.8F);
}

TEST_F(ChooserTest, ReadsMayShareABlockWithTheOneBefore) {
  // Records of one and a half blocks: 0 and 1, 1 and 2, 3 and 4, 4 and 5.
  for (std::int64_t record = 0; record < 20; ++record)
    chooser_.observe(BlockRun{record * 3 / 2, 2});
  ASSERT_NE(choose().count, 0u);
  EXPECT_EQ(next_[0].first, 19 * 3 / 2 + 2);
}

TEST_F(ChooserTest, TheSameReadAgainIsNoStep) {
  for (std::int64_t block = 0; block < 20; ++block) read({7 * block, 7 * block, 7 * block});
  ASSERT_EQ(choose().count, 8u);
  EXPECT_EQ(next_[0].first, 7 * 20);
}

TEST_F(ChooserTest, ADeclaredOrderIsBelievedBeforeTheFirstRead) {
  chooser_.hints().declare(
      std::make_shared<const std::vector<BlockRun>>(std::vector<BlockRun>{{9, 1}, {2, 1}, {5, 1}}));
  ASSERT_EQ(choose().count, 3u);
  EXPECT_EQ(choose().predictor, index_of("declared"));
  EXPECT_EQ(next_[2].first, 5);
}

TEST_F(ChooserTest, AWrongDeclarationIsNotFollowedAndDoesNotHideThePattern) {
  std::vector<BlockRun> runs;
  for (std::int64_t at = 0; at < 1000; ++at) runs.push_back(BlockRun{100'000 + at * 37 % 1000, 1});
  chooser_.hints().declare(std::make_shared<const std::vector<BlockRun>>(runs));
  read_strided(0, 5, 20);
  EXPECT_TRUE(chooser_.hints().is_order_refuted());
  ASSERT_EQ(choose().count, 8u);
  EXPECT_EQ(next_[0].first, 100);
}

TEST_F(ChooserTest, SequentialAdviceDoesAwayWithWaiting) {
  chooser_.hints().advise(AccessAdvice::kSequential);
  read({40});
  ASSERT_EQ(choose().count, 8u);
  EXPECT_EQ(choose().predictor, index_of("advised"));
  EXPECT_EQ(next_[0].first, 41);
  EXPECT_EQ(chooser_.hints().ahead_factor(), 2u);
}

TEST_F(ChooserTest, RandomAdviceSilencesAllButTheDeclaredOrder) {
  chooser_.hints().advise(AccessAdvice::kRandom);
  read_strided(0, 5, 100);
  EXPECT_EQ(choose().count, 0u);
  chooser_.hints().declare(
      std::make_shared<const std::vector<BlockRun>>(std::vector<BlockRun>{{9, 1}, {2, 1}}));
  EXPECT_EQ(choose().count, 2u);
}

TEST(ChooserPatterns, ForeseesWhatLoopsOverArraysRead) {
  for (const AccessPattern& pattern : testing::array_patterns(kReadsOfPattern)) {
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_GE(result.coverage, 0.95) << text_of(pattern.name, result);
    EXPECT_GE(result.accuracy, 0.95) << text_of(pattern.name, result);
  }
}

// Tiles of 3 to 12 blocks a side that need not divide the array, ghost cells one or two deep, block
// by block or a row at a time.
TEST(ChooserPatterns, ForeseesTilesOfArraysOfManyShapes) {
  constexpr int kShapes = 60;
  PrefetchResult mean{0, 0, 0, 0};
  for (int seed = 1; seed <= kShapes; ++seed) {
    RandomSource random(static_cast<std::uint64_t>(seed));
    testing::TiledArray array;
    array.tile_side = 3 + random.below(10);
    array.ghost = 1 + random.below(2);
    array.rows = array.tile_side * (2 + random.below(10)) + random.below(12);
    array.columns = array.tile_side * (8 + random.below(30)) + random.below(12);
    array.reads_whole_rows = random.below(3) == 0;
    const PrefetchResult result = testing::measure_chooser(
        testing::one_stream("tiles", testing::front_of(tile_runs(array), kReadsOfPattern)));
    const std::string shape = "seed " + std::to_string(seed) + ", " + std::to_string(array.rows) +
                              " x " + std::to_string(array.columns) + " by " +
                              std::to_string(array.tile_side) + " with " +
                              std::to_string(array.ghost);
    EXPECT_GE(result.coverage, kCoverageOfAShapeMin) << text_of(shape, result);
    EXPECT_GE(result.accuracy, kAccuracyOfAShapeMin) << text_of(shape, result);
    mean.coverage += result.coverage / kShapes;
    mean.accuracy += result.accuracy / kShapes;
  }
  EXPECT_GE(mean.coverage, 0.95) << text_of("mean", mean);
  EXPECT_GE(mean.accuracy, 0.95) << text_of("mean", mean);
}

TEST(ChooserPatterns, ForeseesTheSameShuffleFromTheSecondEpochOn) {
  const AccessPattern pattern = testing::repeated_shuffle(kReadsOfPattern);
  const PrefetchResult result = testing::measure_chooser(pattern);
  EXPECT_GE(result.coverage, 0.90);
  EXPECT_GE(result.accuracy, 0.95);
}

TEST(ChooserPatterns, ForeseesADeclaredOrder) {
  const AccessPattern pattern = testing::epoch_shuffles(kReadsOfPattern);
  const PrefetchResult result = testing::measure_chooser(pattern, order_of(pattern));
  EXPECT_GE(result.coverage, 0.99);
  EXPECT_GE(result.accuracy, 0.99);
}

TEST(ChooserPatterns, WastesLittleOnWhatNobodyCanForesee) {
  for (const AccessPattern& pattern : testing::patternless(kReadsOfPattern)) {
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_LE(result.waste, 0.02) << text_of(pattern.name, result);
  }
}

TEST(ChooserPatterns, IsHardlyWorseThanTheBestPredictor) {
  std::vector<AccessPattern> patterns = testing::array_patterns(6000);
  patterns.push_back(testing::repeated_shuffle(6000));
  patterns.push_back(testing::mixed_streams(6000));
  for (const AccessPattern& pattern : patterns) {
    PrefetchResult best;
    std::string name_of_best;
    for (const PredictorMaker& maker : kPredictorMakers) {
      const PrefetchResult alone = testing::measure_predictor(pattern, maker);
      if (alone.coverage - alone.waste <= best.coverage - best.waste) continue;
      best = alone;
      name_of_best = maker.name;
    }
    const PrefetchResult chosen = testing::measure_chooser(pattern);
    EXPECT_GE(chosen.coverage - chosen.waste, best.coverage - best.waste - kLossMax)
        << text_of(pattern.name, chosen) << "\nagainst " << text_of(name_of_best, best);
  }
}

}  // namespace
}  // namespace cairn
