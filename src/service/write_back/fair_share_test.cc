// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/fair_share.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace cairn::node {
namespace {

using Candidate = FairShare::Candidate;
constexpr std::uint64_t kTurn = 32 << 20;

// What each run stores in this many turns, all of them having something to store all the time.
std::map<std::uint32_t, std::uint64_t> serve(FairShare& share,
                                             const std::vector<Candidate>& candidates, int turns,
                                             std::uint64_t bytes = kTurn) {
  std::map<std::uint32_t, std::uint64_t> stored;
  for (int turn = 0; turn < turns; ++turn) {
    const std::uint32_t run = candidates[share.choose(candidates)].run;
    share.charge(run, bytes);
    stored[run] += bytes;
  }
  return stored;
}

TEST(FairShare, EqualWeightsShareEqually) {
  FairShare share;
  const auto stored = serve(share, {{1, false}, {2, false}}, 100);
  EXPECT_EQ(stored.at(1), stored.at(2));
}

TEST(FairShare, WeightsDecideTheShares) {
  FairShare share;
  share.set_weight(1, 300);
  share.set_weight(2, 100);
  const auto stored = serve(share, {{1, false}, {2, false}}, 400);
  EXPECT_NEAR(static_cast<double>(stored.at(1)) / static_cast<double>(stored.at(2)), 3, 0.1);
}

TEST(FairShare, SilenceEarnsNothing) {
  FairShare share;
  serve(share, {{1, false}}, 1000);
  const auto stored = serve(share, {{1, false}, {2, false}}, 20);
  EXPECT_NEAR(static_cast<double>(stored.at(1)), static_cast<double>(stored.at(2)), 2.0 * kTurn);
}

TEST(FairShare, ARunThatComputesGoesFirst) {
  FairShare share;
  const std::vector<Candidate> candidates = {{1, true}, {2, false}};
  EXPECT_EQ(candidates[share.choose(candidates)].run, 2u);
}

TEST(FairShare, NobodyStarvesBehindARunThatComputes) {
  FairShare share;
  const auto stored = serve(share, {{1, true}, {2, false}}, 200);
  EXPECT_NEAR(static_cast<double>(stored.at(1)), static_cast<double>(stored.at(2)),
              2.0 * FairShare::kSlackBytes);
}

TEST(FairShare, ForgetsWhatHasEnded) {
  FairShare share;
  share.set_weight(7, 900);
  share.forget(7);
  EXPECT_EQ(share.weight_of(7), FairShare::kWeightDefault);
}

}  // namespace
}  // namespace cairn::node
