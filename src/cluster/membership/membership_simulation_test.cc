// SPDX-License-Identifier: Apache-2.0
// Membership under simulated faults. After every event testing/simulated_cluster.h looks whether
// what must hold does.
//
// CAIRN_SEED=N repeats one run and prints its schedule; CAIRN_SEEDS=N makes N runs with faults.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <string>

#include "cluster/membership/testing/simulated_cluster.h"
#include "cluster/transport/testing/fault_schedule.h"

namespace cairn::cluster {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr std::int64_t kViewChangeMaxNs = LeaseTerms().lease_ns + kSecond / 2;

// The sanitizers slow a run down some twenty times, and a few runs show them all of the code.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 14;
#else
constexpr std::uint64_t kSeeds = 200;
#endif

// A run with every kind of fault for 30 s; then the cluster has 20 s to become whole.
void run_with_faults(std::uint64_t seed, bool prints) {
  const auto hosts = static_cast<std::uint32_t>(1 + seed % 7);
  SimulatedCluster cluster(hosts, seed);
  if (prints) cluster.network().keep_schedule();
  FaultMix mix = all_faults();
  mix.quiet_ns = 30 * kSecond;
  schedule_faults(cluster.network(), mix);
  cluster.run_until(mix.quiet_ns + 20 * kSecond);
  const bool is_whole = cluster.is_whole();
  if (prints) {
    for (const std::string& line : cluster.network().schedule()) std::cout << line << "\n";
  }
  ASSERT_EQ(cluster.violation(), "") << "CAIRN_SEED=" << seed;
  ASSERT_TRUE(is_whole) << "CAIRN_SEED=" << seed << " with " << hosts << " hosts";
}

TEST(MembershipSimulation, HoldsUnderFaults) {
  if (const std::uint64_t seed = number_from("CAIRN_SEED", 0); seed != 0) {
    run_with_faults(seed, true);
    return;
  }
  const std::uint64_t seeds = number_from("CAIRN_SEEDS", kSeeds);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFatalFailure(); ++seed) {
    run_with_faults(seed, false);
  }
}

std::uint64_t fingerprint_of(std::uint64_t seed) {
  SimulatedCluster cluster(5, seed);
  FaultMix mix = all_faults();
  mix.quiet_ns = 20 * kSecond;
  schedule_faults(cluster.network(), mix);
  cluster.run_until(25 * kSecond);
  return cluster.network().fingerprint();
}

TEST(MembershipSimulation, ASeedReplaysExactly) {
  EXPECT_EQ(fingerprint_of(3), fingerprint_of(3));
  EXPECT_NE(fingerprint_of(3), fingerprint_of(4));
}

TEST(MembershipSimulation, NobodyIsDeclaredDeadWithoutFaults) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto hosts = static_cast<std::uint32_t>(1 + seed % 8);
    SimulatedCluster cluster(hosts, seed);
    // Slow links, and clocks that differ by a tenth.
    cluster.network().set_faults({.delay_min_ns = kMillisecond, .delay_max_ns = 60 * kMillisecond});
    for (std::uint32_t i = 1; i <= hosts; ++i) {
      cluster.network().set_clock_rate(NodeId{i},
                                       static_cast<std::int32_t>(i % 3) * 100'000 - 100'000);
    }
    const std::int64_t took = cluster.run_until([&] { return cluster.is_whole(); }, 10 * kSecond);
    ASSERT_GE(took, 0) << seed;
    const Epoch epoch = cluster.node(NodeId{1})->member().view().epoch;
    for (int i = 0; i < 60; ++i) {
      cluster.run_for(kSecond);
      ASSERT_TRUE(cluster.is_whole()) << seed << " after " << i << " s";
    }
    EXPECT_EQ(cluster.violation(), "");
    EXPECT_EQ(cluster.deaths(), 0U);
    EXPECT_EQ(cluster.node(NodeId{1})->member().view().epoch, epoch);
    for (std::uint32_t i = 1; i <= hosts; ++i) {
      EXPECT_EQ(cluster.node(NodeId{i})->member().lives(), 1U);
    }
  }
}

class Cluster : public testing::Test {
 protected:
  void start(std::uint32_t hosts, std::uint64_t seed = 1) {
    cluster_ = std::make_unique<SimulatedCluster>(hosts, seed);
    ASSERT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 10 * kSecond), 0);
  }
  void TearDown() override {
    if (cluster_ != nullptr) {
      EXPECT_EQ(cluster_->violation(), "");
    }
  }
  Member& member(NodeId node) { return cluster_->node(node)->member(); }
  SimulatedNetwork& network() { return cluster_->network(); }
  bool is_member_for_others(NodeId node) {
    for (std::uint32_t i = 1; i <= cluster_->hosts(); ++i) {
      if (NodeId{i} == node || cluster_->node(NodeId{i}) == nullptr) continue;
      if (member(NodeId{i}).view().find(node) != nullptr) return true;
    }
    return false;
  }
  // Runs until all others know a view without the node. Returns: how long that took.
  std::int64_t time_of_death(NodeId node) {
    return cluster_->run_until([&] { return !is_member_for_others(node); }, 30 * kSecond);
  }
  bool everything_is_served() {
    for (std::uint32_t p = 0; p < SimulatedCluster::kSimulatedPartitions; ++p) {
      bool is_served = false;
      for (std::uint32_t i = 1; i <= cluster_->hosts(); ++i) {
        is_served |= cluster_->serves(NodeId{i}, p);
      }
      if (!is_served) return false;
    }
    return true;
  }
  NodeId any_but_coordinators() const { return NodeId{4}; }
  void cut_both_ways(NodeId a, NodeId b) {
    network().cut(a, b);
    network().cut(b, a);
  }

  std::unique_ptr<SimulatedCluster> cluster_;
};

TEST_F(Cluster, StartsWithinTwoSeconds) {
  for (const std::uint32_t hosts : {1U, 2U, 3U, 8U, 32U}) {
    SimulatedCluster cluster(hosts, hosts);
    const std::int64_t took = cluster.run_until([&] { return cluster.is_whole(); }, 10 * kSecond);
    EXPECT_GE(took, 0) << hosts;
    EXPECT_LE(took, 3 * kSecond) << hosts;
    EXPECT_EQ(cluster.violation(), "");
  }
}

TEST_F(Cluster, DeclaresADeadNodeDeadWithinItsLeaseAndHalfASecond) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(5, seed);
    network().crash(any_but_coordinators());
    const std::int64_t took = time_of_death(any_but_coordinators());
    EXPECT_GT(took, 4 * kSecond);
    EXPECT_LE(took, kViewChangeMaxNs);
    EXPECT_GE(cluster_->run_until([&] { return everything_is_served(); }, kSecond), 0);
    EXPECT_EQ(cluster_->deaths(), 1U);
    EXPECT_EQ(cluster_->violation(), "");
  }
}

TEST_F(Cluster, OthersServeAllTheTimeWhileANodeDies) {
  start(6);
  std::set<std::pair<std::uint32_t, std::uint32_t>> before;
  const auto served = [&] {
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t i = 1; i <= 6; ++i) {
      for (std::uint32_t p = 0; p < SimulatedCluster::kSimulatedPartitions; ++p) {
        if (NodeId{i} != any_but_coordinators() && cluster_->serves(NodeId{i}, p)) {
          pairs.emplace(i, p);
        }
      }
    }
    return pairs;
  };
  before = served();
  ASSERT_GT(before.size(), 15U);
  network().crash(any_but_coordinators());
  for (int i = 0; i < 1300; ++i) {
    cluster_->run_for(5 * kMillisecond);
    const auto now = served();
    for (const auto& pair : before) ASSERT_TRUE(now.contains(pair)) << i;
  }
  EXPECT_EQ(served().size(), SimulatedCluster::kSimulatedPartitions);
}

TEST_F(Cluster, TheDeathOfTheLeaderIsADeathLikeOthers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(5, seed);
    const NodeId leader = cluster_->leader();
    network().crash(leader);
    const std::int64_t took = time_of_death(leader);
    EXPECT_GT(took, 0);
    // The next leader counts the lease from when it can commit the last renewal: an election later.
    EXPECT_LE(took, kViewChangeMaxNs + 2 * kSecond) << seed;
    EXPECT_NE(cluster_->leader(), leader);
    EXPECT_EQ(cluster_->deaths(), 1U) << "nobody dies of an election";
    EXPECT_EQ(cluster_->violation(), "");
  }
}

TEST_F(Cluster, ADeadNodeComesBackInANewLife) {
  start(4);
  const Incarnation first = member(any_but_coordinators()).incarnation();
  network().crash(any_but_coordinators());
  ASSERT_GE(time_of_death(any_but_coordinators()), 0);
  network().restart(any_but_coordinators());
  ASSERT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
  EXPECT_GT(member(any_but_coordinators()).incarnation(), first);
}

TEST_F(Cluster, AFastRestartIsANewLifeToo) {
  start(4);
  const Incarnation first = member(any_but_coordinators()).incarnation();
  network().crash(any_but_coordinators());
  network().restart(any_but_coordinators());
  ASSERT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 3 * kSecond), 0);
  EXPECT_GT(member(any_but_coordinators()).incarnation(), first);
  EXPECT_EQ(cluster_->deaths(), 0U);
}

TEST_F(Cluster, AStoppedProcessDoesNotServeWhenItGoesOn) {
  start(4);
  network().pause(any_but_coordinators());
  ASSERT_GE(time_of_death(any_but_coordinators()), 0);
  cluster_->run_for(20 * kSecond);
  network().resume(any_but_coordinators());
  EXPECT_FALSE(
      member(any_but_coordinators()).may_serve(network().clock_ns(any_but_coordinators())));
  ASSERT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
  EXPECT_EQ(member(any_but_coordinators()).lives(), 2U);
}

TEST_F(Cluster, ANodeThatIsCutOffStopsServingAfterHalfItsLease) {
  start(4);
  const NodeId node = any_but_coordinators();
  for (std::uint32_t i = 1; i <= 3; ++i) cut_both_ways(node, NodeId{i});
  const std::int64_t took = cluster_->run_until(
      [&] { return !member(node).may_serve(network().clock_ns(node)); }, 10 * kSecond);
  EXPECT_GE(took, 2 * kSecond - kSecond / 10);
  EXPECT_LE(took, 2'500 * kMillisecond);
  ASSERT_GE(time_of_death(node), 0);
  network().heal_all();
  EXPECT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
}

TEST_F(Cluster, ANodeThatHearsNothingIsDeclaredDeadAlthoughItIsHeard) {
  start(4);
  const NodeId node = any_but_coordinators();
  for (std::uint32_t i = 1; i <= 3; ++i) network().cut(NodeId{i}, node);
  const std::int64_t took = time_of_death(node);
  EXPECT_GE(took, 0);
  EXPECT_LE(took, LeaseTerms().serving_ns() + kViewChangeMaxNs + kSecond / 2);
  network().heal_all();
  EXPECT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
}

TEST_F(Cluster, ALeaderThatIsCutOffWithAMemberGrantsItNothing) {
  start(5);
  const NodeId leader = cluster_->leader();
  for (std::uint32_t i = 1; i <= 3; ++i) {
    if (NodeId{i} == leader) continue;
    cut_both_ways(NodeId{i}, leader);
    cut_both_ways(NodeId{i}, any_but_coordinators());
  }
  cut_both_ways(NodeId{5}, leader);
  cut_both_ways(NodeId{5}, any_but_coordinators());
  cluster_->run_for(12 * kSecond);
  for (const NodeId node : {leader, any_but_coordinators()}) {
    EXPECT_FALSE(member(node).may_serve(network().clock_ns(node)));
    EXPECT_EQ(member(NodeId{5}).view().find(node), nullptr);
  }
  EXPECT_TRUE(everything_is_served());
}

TEST_F(Cluster, WithoutAMajorityNobodyServesAndNobodyDies) {
  start(5);
  network().crash(NodeId{1});
  network().crash(NodeId{2});
  cluster_->run_for(20 * kSecond);
  for (std::uint32_t i = 3; i <= 5; ++i) {
    EXPECT_FALSE(member(NodeId{i}).may_serve(network().clock_ns(NodeId{i})));
  }
  network().restart(NodeId{1});
  network().restart(NodeId{2});
  EXPECT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 10 * kSecond), 0);
}

TEST_F(Cluster, OfTwoHostsTheFirstCoordinates) {
  start(2);
  network().crash(NodeId{1});
  cluster_->run_for(3 * kSecond);
  EXPECT_FALSE(member(NodeId{2}).may_serve(network().clock_ns(NodeId{2})));
  network().restart(NodeId{1});
  EXPECT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
  network().crash(NodeId{2});
  EXPECT_GE(time_of_death(NodeId{2}), 0);
  EXPECT_GE(cluster_->run_until([&] { return everything_is_served(); }, kSecond), 0);
}

TEST_F(Cluster, WhoLeavesIsGoneAtOnceAndNotDead) {
  start(4);
  member(any_but_coordinators()).leave(network().clock_ns(any_but_coordinators()));
  EXPECT_FALSE(
      member(any_but_coordinators()).may_serve(network().clock_ns(any_but_coordinators())));
  const std::int64_t took = time_of_death(any_but_coordinators());
  EXPECT_LE(took, 100 * kMillisecond);
  EXPECT_GE(cluster_->run_until([&] { return everything_is_served(); }, 200 * kMillisecond), 0);
  EXPECT_EQ(cluster_->deaths(), 0U);
  EXPECT_EQ(member(any_but_coordinators()).state(), MemberState::kLeft);
}

TEST_F(Cluster, AMessageIsJudgedByItsEpochAndLife) {
  start(4);
  Member& node = member(NodeId{1});
  Message message;
  message.from = {NodeId{4}, member(NodeId{4}).incarnation()};
  message.epoch = node.view().epoch;
  EXPECT_EQ(node.standing_of(message), Standing::kCurrent);
  message.epoch = Epoch{raw(node.view().epoch) - 1};
  EXPECT_EQ(node.standing_of(message), Standing::kOlder);
  message.epoch = next(node.view().epoch);
  EXPECT_EQ(node.standing_of(message), Standing::kNewer);
  message.epoch = node.view().epoch;
  message.from.incarnation = Incarnation{99};
  EXPECT_EQ(node.standing_of(message), Standing::kStranger);
}

TEST_F(Cluster, LogsOfCoordinatorsStayShort) {
  start(4);
  cluster_->run_for(120 * kSecond);
  network().crash(NodeId{2});
  cluster_->run_for(60 * kSecond);
  // It is so late that it gets a snapshot.
  network().restart(NodeId{2});
  EXPECT_GE(cluster_->run_until([&] { return cluster_->is_whole(); }, 5 * kSecond), 0);
  EXPECT_EQ(cluster_->node(NodeId{2})->coordinator()->state().view(), member(NodeId{4}).view());
}

}  // namespace
}  // namespace cairn::cluster
