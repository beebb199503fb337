// SPDX-License-Identifier: Apache-2.0
// Whatever a predictor does, those who follow streams go on at once, what it foresees can be true,
// and what was wrong is said once.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "policy/prefetch/chooser.h"
#include "service/plugins/predictor_plugin.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The numbers of moody_predictor.cc.
enum Mood : std::int64_t {
  kGood,
  kThrowsError,
  kThrowsNumber,
  kLoops,
  kCountsTooFar,
  kNegative,
  kNoBlocks,
  kOverflows,
  kBehindEnd,
  kAcrossEnd
};
constexpr std::int64_t kMoodBlock = 900;
constexpr std::int64_t kFileBlocks = 1000;

std::string path_of(const std::string& plugin) {
  return std::string(PLUGIN_FOLDER) + "/" + plugin + ".so";
}

class MisbehavingPredictors : public ::testing::Test {
 protected:
  Result<std::unique_ptr<PredictorPlugin>> load(const std::string& path,
                                                milliseconds limit = PredictorPlugin::kTimeLimit) {
    return PredictorPlugin::load(
        path,
        [this](const std::string& complaint) {
          const std::lock_guard lock(mutex_);
          complaints_.push_back(complaint);
        },
        limit);
  }
  std::unique_ptr<PredictorPlugin> loaded(const std::string& plugin = "moody_predictor",
                                          milliseconds limit = PredictorPlugin::kTimeLimit) {
    auto result = load(path_of(plugin), limit);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return result.is_ok() ? std::move(result.value()) : nullptr;
  }
  std::string error_of(const std::string& path, StatusCode code) {
    const auto result = load(path, milliseconds(100));
    EXPECT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().code(), code) << result.status().message();
    EXPECT_NE(result.status().message().find("predictor " + path), std::string::npos)
        << result.status().message();
    return result.status().message();
  }
  // The forecast once the plugin has answered: the first read asks it, and the second one finds the
  // answer.
  std::vector<BlockRun> foreseen(PredictorPlugin& plugin, Predictor& predictor,
                                 std::int64_t first_block) {
    predictor.observe(BlockRun{first_block, 1});
    plugin.settle();
    predictor.observe(BlockRun{first_block + 1, 1});
    plugin.settle();
    std::vector<BlockRun> next(16);
    next.resize(predictor.predict(next));
    return next;
  }
  std::vector<std::string> complaints() {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

  std::mutex mutex_;
  std::vector<std::string> complaints_;
};

TEST_F(MisbehavingPredictors, AGoodMoodIsFollowed) {
  const auto plugin = loaded();
  ASSERT_NE(plugin, nullptr);
  EXPECT_STREQ(plugin->name(), "moody");
  const auto predictor = plugin->make(kFileBlocks);
  const std::vector<BlockRun> next = foreseen(*plugin, *predictor, 100);
  ASSERT_EQ(next.size(), 16u);
  EXPECT_EQ(next[0], (BlockRun{102, 1}));
  EXPECT_EQ(next[15], (BlockRun{117, 1}));
  EXPECT_TRUE(complaints().empty());
  EXPECT_TRUE(plugin->is_trusted());
}

TEST_F(MisbehavingPredictors, WhatCannotBeTrueIsLeftOutAndSaidOnce) {
  const std::pair<Mood, const char*> faults[] = {
      {kNegative, "foresees 1 blocks from block -5, which are none"},
      {kNoBlocks, "foresees 0 blocks from block"},
      {kOverflows, "foresees 4294967295 blocks from block 9223372036854775806, which are none"},
      {kBehindEnd, "foresees 1 blocks from block 1000 of a file of 1000; what lies behind"}};
  for (const auto& [mood, text] : faults) {
    const auto plugin = loaded();
    ASSERT_NE(plugin, nullptr);
    complaints_.clear();
    const auto predictor = plugin->make(kFileBlocks);
    predictor->observe(BlockRun{kMoodBlock + mood, 1});
    plugin->settle();
    // The second of what is foreseen is the fault.
    const std::vector<BlockRun> next = foreseen(*plugin, *predictor, 100);
    ASSERT_GE(next.size(), 2u) << text;
    EXPECT_EQ(next[0].first, 103) << text;
    for (int round = 0; round < 200; ++round) {
      predictor->observe(BlockRun{7 * round % 800, 1});
      plugin->settle();
    }
    ASSERT_EQ(complaints().size(), 1u) << text;
    EXPECT_NE(complaints()[0].find(text), std::string::npos) << complaints()[0];
    EXPECT_NE(complaints()[0].find("predictor 'moody' ("), std::string::npos) << complaints()[0];
    EXPECT_TRUE(plugin->is_trusted());
  }
}

TEST_F(MisbehavingPredictors, WhatGoesOnBehindTheEndIsCut) {
  const auto plugin = loaded();
  ASSERT_NE(plugin, nullptr);
  const auto predictor = plugin->make(kFileBlocks);
  predictor->observe(BlockRun{kMoodBlock + kAcrossEnd, 1});
  plugin->settle();
  predictor->observe(BlockRun{100, 1});
  plugin->settle();
  predictor->observe(BlockRun{101, 1});
  std::array<BlockRun, 2> next;
  ASSERT_EQ(predictor->predict(next), 2u);
  EXPECT_EQ(next[0], (BlockRun{998, 2}));
  EXPECT_TRUE(complaints().empty());
}

TEST_F(MisbehavingPredictors, AnAnswerThatCountsTooFarIsNotUsed) {
  const auto plugin = loaded();
  ASSERT_NE(plugin, nullptr);
  const auto predictor = plugin->make(kFileBlocks);
  predictor->observe(BlockRun{kMoodBlock + kCountsTooFar, 1});
  plugin->settle();
  EXPECT_TRUE(foreseen(*plugin, *predictor, 100).empty());
  ASSERT_EQ(complaints().size(), 1u);
  EXPECT_NE(complaints()[0].find("foresees 1000000 reads where there is room for 256"),
            std::string::npos)
      << complaints()[0];
  EXPECT_TRUE(plugin->is_trusted());
}

TEST_F(MisbehavingPredictors, OneThatThrowsIsNotAskedAgain) {
  for (const auto& [mood, text] :
       {std::pair{kThrowsError, "threw an exception: out of ideas; it is not asked any more"},
        std::pair{kThrowsNumber, "threw an exception; it is not asked any more"}}) {
    const auto plugin = loaded();
    ASSERT_NE(plugin, nullptr);
    complaints_.clear();
    const auto other = plugin->make(kFileBlocks);
    EXPECT_FALSE(foreseen(*plugin, *other, 100).empty());
    const auto predictor = plugin->make(kFileBlocks);
    predictor->observe(BlockRun{kMoodBlock + mood, 1});
    plugin->settle();
    EXPECT_FALSE(plugin->is_trusted());
    EXPECT_TRUE(foreseen(*plugin, *predictor, 100).empty());
    EXPECT_TRUE(foreseen(*plugin, *other, 200).empty()) << "no stream is to ask it";
    EXPECT_TRUE(foreseen(*plugin, *plugin->make(kFileBlocks), 100).empty());
    ASSERT_EQ(complaints().size(), 1u);
    EXPECT_NE(complaints()[0].find(text), std::string::npos) << complaints()[0];
  }
}

TEST_F(MisbehavingPredictors, ALoopKeepsNobodyWaiting) {
  const auto plugin = loaded("moody_predictor", milliseconds(50));
  ASSERT_NE(plugin, nullptr);
  const auto begin = steady_clock::now();
  const auto predictor = plugin->make(kFileBlocks);
  predictor->observe(BlockRun{kMoodBlock + kLoops, 1});
  for (int read = 0; read < 1000; ++read) predictor->observe(BlockRun{read % 800, 1});
  // Generous: the machine is shared. Waiting for each would be 50 s.
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
  plugin->settle();
  EXPECT_FALSE(plugin->is_trusted());
  ASSERT_EQ(complaints().size(), 1u);
  EXPECT_NE(complaints()[0].find("did not return within 50 ms; it is not asked any more"),
            std::string::npos)
      << complaints()[0];
}

// The chooser goes on with the predictors that are built in.
TEST_F(MisbehavingPredictors, OthersAreAskedInItsPlace) {
  const auto plugin = loaded("throwing_predictor");
  ASSERT_NE(plugin, nullptr);
  NodeKnowledge node;
  Chooser chooser(node.file(1), node, plugin.get());
  chooser.set_file_blocks(kFileBlocks);
  for (std::int64_t read = 0; read < 100; ++read) chooser.observe(BlockRun{3 * read, 1});
  plugin->settle();
  EXPECT_FALSE(plugin->is_trusted());
  std::array<BlockRun, 4> next;
  const Chooser::Choice choice = chooser.predict(next);
  EXPECT_EQ(choice.count, 4u);
  EXPECT_NE(choice.predictor, Chooser::kSupplied);
}

TEST_F(MisbehavingPredictors, OneThatDeclinesIsNotAskedAboutTheStream) {
  const auto plugin = loaded("declining_predictor");
  ASSERT_NE(plugin, nullptr);
  const auto predictor = plugin->make(kFileBlocks);
  EXPECT_TRUE(foreseen(*plugin, *predictor, 100).empty());
  EXPECT_TRUE(complaints().empty());
  EXPECT_TRUE(plugin->is_trusted());
}

TEST_F(MisbehavingPredictors, StatesAreGivenBackAndPredictorsMayOutlivePlugins) {
  auto plugin = loaded();
  ASSERT_NE(plugin, nullptr);
  void* object = dlopen(path_of("moody_predictor").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(object, nullptr);
  const auto live_states = reinterpret_cast<int (*)()>(dlsym(object, "moody_live_states"));
  ASSERT_NE(live_states, nullptr);
  const int before = live_states();
  auto kept = plugin->make(kFileBlocks);
  {
    const auto ended = plugin->make(kFileBlocks);
    EXPECT_FALSE(foreseen(*plugin, *ended, 100).empty());
    EXPECT_FALSE(foreseen(*plugin, *kept, 100).empty());
    EXPECT_EQ(live_states(), before + 2);
  }
  plugin->settle();
  EXPECT_EQ(live_states(), before + 1);
  plugin.reset();
  kept->observe(BlockRun{102, 1});
  std::array<BlockRun, 2> next;
  EXPECT_EQ(kept->predict(next), 0u);
  dlclose(object);
}

// As many streams as there may be, and a plugin that answers for all of them.
TEST_F(MisbehavingPredictors, ManyStreamsAreAnsweredInTurn) {
  const auto plugin = loaded();
  ASSERT_NE(plugin, nullptr);
  std::vector<std::unique_ptr<Predictor>> predictors;
  for (int stream = 0; stream < 1000; ++stream) predictors.push_back(plugin->make(kFileBlocks));
  for (std::int64_t read = 0; read < 10; ++read) {
    for (const auto& predictor : predictors) predictor->observe(BlockRun{read, 1});
  }
  plugin->settle();
  for (const auto& predictor : predictors) {
    predictor->observe(BlockRun{10, 1});
    BlockRun next;
    ASSERT_EQ(predictor->predict({&next, 1}), 1u);
    EXPECT_EQ(next.first, 11);
  }
}

TEST_F(MisbehavingPredictors, WhatCannotBeLoadedIsAnError) {
  EXPECT_NE(error_of(path_of("missing"), StatusCode::kNotFound).find("No such file"),
            std::string::npos);
  error_of(std::string(PLUGIN_FOLDER), StatusCode::kInvalid);
  EXPECT_NE(error_of(path_of("no_policy"), StatusCode::kInvalid).find("no cairn_predictor_v1()"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("moody"), StatusCode::kInvalid).find("no cairn_predictor_v1()"),
            std::string::npos)
      << "a policy is no predictor";
  EXPECT_NE(error_of(path_of("other_version_predictor"), StatusCode::kIncompatible)
                .find("made for version 2 of the interface; this is version 1"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("unnamed_predictor"), StatusCode::kInvalid).find("no valid name"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("taken_name_predictor"), StatusCode::kInvalid)
                .find("the name of a built-in predictor, stride"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("predicts_nothing"), StatusCode::kInvalid).find("no functions"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("predictor_throws_at_once"), StatusCode::kInvalid)
                .find("no predictor today"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("predictor_loops_at_once"), StatusCode::kUnavailable)
                .find("did not return within 200 ms"),
            std::string::npos);
}

TEST_F(MisbehavingPredictors, ATextFileIsNoSharedObject) {
  const std::string path = std::string(PLUGIN_FOLDER) + "/text_predictor.so";
  std::ofstream(path) << "the next block: the one behind the last\n";
  EXPECT_NE(error_of(path, StatusCode::kInvalid).find("is not loaded"), std::string::npos);
}

}  // namespace
}  // namespace cairn
