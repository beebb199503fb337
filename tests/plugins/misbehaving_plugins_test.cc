// SPDX-License-Identifier: Apache-2.0
// Whatever a plugin does, a decision is made, in time, and what was wrong is said.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "policy/placement/policies.h"
#include "service/plugins/plugin_policy.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kMiB = 1 << 20;

// The numbers of moody_plugin.cc.
enum Mood : std::uint64_t {
  kGood,
  kThrowsError,
  kThrowsNumber,
  kLoops,
  kIsSlow,
  kOverfills,
  kFails,
  kCountsTooFar,
  kInventsTiers,
  kInventsSteps
};

std::string path_of(const std::string& plugin) { return PLUGIN_FOLDER "/" + plugin + ".so"; }

class MisbehavingPlugins : public ::testing::Test {
 protected:
  Result<std::unique_ptr<PluginPolicy>> load(const std::string& path,
                                             milliseconds limit = PluginPolicy::kTimeLimit) {
    return PluginPolicy::load(
        path, *placement_policies()[0],
        [this](const std::string& complaint) { complaints_.push_back(complaint); }, limit);
  }
  std::unique_ptr<PluginPolicy> moody() {
    auto loaded = load(path_of("moody"));
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    return loaded.is_ok() ? std::move(loaded.value()) : nullptr;
  }
  std::string error_of(const std::string& path, StatusCode code) {
    const auto loaded = load(path, milliseconds(10));
    EXPECT_FALSE(loaded.is_ok());
    EXPECT_EQ(loaded.status().code(), code) << loaded.status().message();
    EXPECT_NE(loaded.status().message().find(path), std::string::npos);
    return loaded.status().message();
  }
  // The tier of one block; the fallback takes the first, the plugin in its good mood the last.
  unsigned decide(const PluginPolicy& policy, Mood mood) {
    PlacementRequest request{kBlockBytes};
    request.sequence = mood;
    const auto chosen = policy.choose(tiers_, request);
    return chosen ? raw(*chosen) : 99;
  }

  std::vector<TierView> tiers_ = {TierView{TierId::kMemory, 64 * kMiB, 64 * kMiB},
                                  TierView{static_cast<TierId>(1), 64 * kMiB, 64 * kMiB}};
  std::vector<std::string> complaints_;
};

TEST_F(MisbehavingPlugins, AGoodMoodIsFollowed) {
  const auto policy = moody();
  ASSERT_NE(policy, nullptr);
  EXPECT_STREQ(policy->name(), "moody");
  EXPECT_EQ(policy->plan_order(), PlanOrder::kPerBlock);
  for (int round = 0; round < 1000; ++round) ASSERT_EQ(decide(*policy, kGood), 1u);
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(MisbehavingPlugins, EachFaultIsSaidAndTheDefaultDecides) {
  const auto policy = moody();
  ASSERT_NE(policy, nullptr);
  const std::pair<Mood, const char*> faults[] = {
      {kThrowsError, "threw an exception: out of ideas"},
      {kThrowsNumber, "threw an exception;"},
      {kOverfills, "answer places more than there is room for"},
      {kFails, "failed with 7"},
      {kCountsTooFar, "answer has too many steps"},
      {kInventsTiers, "answer names a tier that does not exist"},
      {kInventsSteps, "answer has a step of an unknown kind"}};
  for (const auto& [mood, text] : faults) {
    complaints_.clear();
    EXPECT_EQ(decide(*policy, mood), 0u) << text;
    ASSERT_EQ(complaints_.size(), 1u) << text;
    EXPECT_NE(complaints_[0].find(text), std::string::npos) << complaints_[0];
    EXPECT_NE(complaints_[0].find("'moody'"), std::string::npos) << complaints_[0];
    EXPECT_NE(complaints_[0].find("'max-bandwidth' decides"), std::string::npos) << complaints_[0];
    // One good answer, and it is trusted as before.
    EXPECT_EQ(decide(*policy, kGood), 1u);
  }
  EXPECT_TRUE(policy->is_trusted());
}

TEST_F(MisbehavingPlugins, ThreeFaultsInARowAreEnough) {
  const auto policy = moody();
  ASSERT_NE(policy, nullptr);
  for (int fault = 0; fault < 3; ++fault) EXPECT_EQ(decide(*policy, kThrowsNumber), 0u);
  EXPECT_FALSE(policy->is_trusted());
  EXPECT_EQ(decide(*policy, kGood), 0u);
  ASSERT_EQ(complaints_.size(), 3u);
  EXPECT_NE(complaints_[1].find("this time"), std::string::npos);
  EXPECT_NE(complaints_[2].find("from now on"), std::string::npos);
}

TEST_F(MisbehavingPlugins, ALoopCostsTheLimitOnce) {
  const auto policy = moody();
  ASSERT_NE(policy, nullptr);
  const auto begin = steady_clock::now();
  EXPECT_EQ(decide(*policy, kLoops), 0u);
  const auto first = steady_clock::now() - begin;
  for (int round = 0; round < 1000; ++round) ASSERT_EQ(decide(*policy, kGood), 0u);
  const auto others = steady_clock::now() - begin - first;
  EXPECT_GE(first, milliseconds(50));
  // Generous: the machine is shared. A limit for each would be 50 s.
  EXPECT_LT(first, milliseconds(5000));
  EXPECT_LT(others, milliseconds(5000));
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_NE(complaints_[0].find("did not return within 50 ms"), std::string::npos);
}

TEST_F(MisbehavingPlugins, WhatIsOnlySlowMayTryAgain) {
  const auto policy = moody();
  ASSERT_NE(policy, nullptr);
  EXPECT_EQ(decide(*policy, kIsSlow), 0u);
  EXPECT_EQ(decide(*policy, kGood), 0u);
  ASSERT_EQ(complaints_.size(), 1u);
  unsigned chosen = 0;
  for (int round = 0; round < 2000 && chosen == 0; ++round) {
    std::this_thread::sleep_for(milliseconds(10));
    chosen = decide(*policy, kGood);
  }
  EXPECT_EQ(chosen, 1u);
}

TEST_F(MisbehavingPlugins, WhatCannotBeLoadedIsAnError) {
  EXPECT_NE(error_of(path_of("missing"), StatusCode::kNotFound).find("No such file"),
            std::string::npos);
  error_of(std::string(PLUGIN_FOLDER), StatusCode::kInvalid);
  EXPECT_NE(error_of(path_of("no_policy"), StatusCode::kInvalid).find("cairn_placement_policy_v1"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("other_version"), StatusCode::kIncompatible)
                .find("made for version 2 of the interface; this is version 1"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("unnamed"), StatusCode::kInvalid).find("no valid name"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("solves_nothing"), StatusCode::kInvalid).find("no function"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("throws_at_once"), StatusCode::kInvalid).find("no policy today"),
            std::string::npos);
  EXPECT_NE(error_of(path_of("loops_at_once"), StatusCode::kUnavailable).find("did not return"),
            std::string::npos);
}

TEST_F(MisbehavingPlugins, ATextFileIsNoSharedObject) {
  const std::string path = PLUGIN_FOLDER "/text.so";
  std::ofstream(path) << "placement: everything in memory\n";
  EXPECT_NE(error_of(path, StatusCode::kInvalid).find("is not loaded"), std::string::npos);
}

}  // namespace
}  // namespace cairn
