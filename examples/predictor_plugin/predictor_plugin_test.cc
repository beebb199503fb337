// SPDX-License-Identifier: Apache-2.0
// The example plugin, loaded as the service loads it, foresees what its comment says, is chosen for
// that, and costs those who follow streams little.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "policy/prefetch/chooser.h"
#include "service/plugins/predictor_plugin.h"

namespace cairn {
namespace {

constexpr std::int64_t kFileBlocks = 1024;

class ExamplePredictor : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = PredictorPlugin::load(
        EXAMPLE_PLUGIN, [this](const std::string& complaint) { complaints_.push_back(complaint); });
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
    plugin_ = std::move(loaded.value());
  }
  // The block of the n-th read: each of the file once, when the growth is odd.
  static std::int64_t block_of(std::int64_t read, std::int64_t growth = 1) {
    return (growth * read * (read + 1) / 2) % kFileBlocks;
  }

  std::vector<std::string> complaints_;
  std::unique_ptr<PredictorPlugin> plugin_;
};

TEST_F(ExamplePredictor, ForeseesReadsWhoseDistanceGrows) {
  EXPECT_STREQ(plugin_->name(), "growing-stride");
  const std::unique_ptr<Predictor> predictor = plugin_->make(kFileBlocks);
  for (std::int64_t read = 0; read < 6; ++read) {
    predictor->observe(BlockRun{block_of(read, 3), 2});
    plugin_->settle();
  }
  std::array<BlockRun, 40> next;
  ASSERT_EQ(predictor->predict(next), next.size());
  for (std::int64_t at = 0; at < 40; ++at)
    EXPECT_EQ(next[static_cast<std::size_t>(at)].first, block_of(6 + at, 3)) << at;
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(ExamplePredictor, IsChosenWhereTheOthersHaveNothingToSay) {
  NodeKnowledge node;
  Chooser with(node.file(1), node, plugin_.get());
  Chooser without(node.file(2), node);
  with.set_file_blocks(kFileBlocks);
  std::int64_t chosen = 0;
  std::int64_t right = 0;
  std::int64_t chosen_without = 0;
  for (std::int64_t read = 0; read < kFileBlocks; ++read) {
    with.observe(BlockRun{block_of(read), 1});
    without.observe(BlockRun{block_of(read), 1});
    plugin_->settle();
    BlockRun next;
    const Chooser::Choice choice = with.predict({&next, 1});
    chosen += choice.predictor == Chooser::kSupplied ? 1 : 0;
    right += choice.count != 0 && next.first == block_of(read + 1) ? 1 : 0;
    chosen_without += without.predict({&next, 1}).count != 0 ? 1 : 0;
  }
  EXPECT_GE(chosen, kFileBlocks * 9 / 10);
  EXPECT_GE(right, kFileBlocks * 9 / 10);
  EXPECT_LE(chosen_without, kFileBlocks / 20);
  EXPECT_TRUE(complaints_.empty());
}

// What each read costs the thread that follows the streams, which does not wait for the answer; and
// all threads together, in processor time. The limits are for machines that do other things, too.
TEST_F(ExamplePredictor, CostsTheFollowerLittle) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kReads = 50'000;
  std::chrono::duration<double, std::nano> follower{};
  const auto measure = [&](const char* what, std::int64_t growth) {
    const std::unique_ptr<Predictor> predictor = plugin_->make(kFileBlocks);
    std::array<BlockRun, 2> next;
    follower = {};
    const std::clock_t processor = std::clock();
    for (std::int64_t read = 0; read < kReads; ++read) {
      // A growth of 0: no pattern at all.
      const std::int64_t block = growth != 0 ? block_of(read, growth) : read * read * read % 1009;
      const Clock::time_point begin = Clock::now();
      predictor->observe(BlockRun{block, 1});
      (void)predictor->predict(next);
      follower += Clock::now() - begin;
      plugin_->settle();
    }
    const double all = 1e9 * static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    std::printf("%s: %.0f ns a read, %.0f ns of all threads\n", what, follower.count() / kReads,
                all / kReads);
    EXPECT_LT(follower.count() / kReads, 20'000) << what;
  };
  measure("while it is right", 1);
  measure("while it is not", 0);

  // The first reads of a stream are a question each.
  constexpr std::int64_t kStreams = 200;
  constexpr std::int64_t kQuestions = 10;
  const Clock::time_point begin = Clock::now();
  for (std::int64_t stream = 0; stream < kStreams; ++stream) {
    const std::unique_ptr<Predictor> predictor = plugin_->make(kFileBlocks);
    for (std::int64_t read = 0; read < kQuestions; ++read) {
      predictor->observe(BlockRun{block_of(read), 1});
      plugin_->settle();
    }
  }
  const std::chrono::duration<double, std::micro> waited = Clock::now() - begin;
  std::printf("what is saved: waiting for a question takes %.1f us\n",
              waited.count() / (kStreams * kQuestions));
}

}  // namespace
}  // namespace cairn
