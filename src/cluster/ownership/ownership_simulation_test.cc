// SPDX-License-Identifier: Apache-2.0
// Files that several simulated hosts use at once: every block is linearizable under faults, and a
// file that one node has open costs no message.
//
// CAIRN_SEED=N repeats one run and prints its schedule; CAIRN_SEEDS=N makes N runs with faults.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>

#include "cluster/membership/testing/simulated_cluster.h"
#include "cluster/ownership/file_home.h"
#include "cluster/ownership/file_user.h"
#include "cluster/ownership/member_authority.h"
#include "cluster/ownership/testing/register_history.h"
#include "cluster/transport/testing/fault_schedule.h"

namespace cairn::cluster {
namespace {

constexpr std::uint32_t kFiles = 3;
constexpr std::uint32_t kBlocks = 2;

LastingKey file_of(std::uint64_t number) {
  return {ObjectKind::kFile, StoreName{7}, {100 + number, 0}};
}

Bytes bytes_of(std::uint64_t value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::uint64_t value_of(const Bytes& bytes) {
  std::uint64_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The store that all nodes share.
class SharedStore final : public BlockStore {
 public:
  Bytes read(const BlockName& name) override { return blocks_[name]; }
  void write(const BlockName& name, std::span<const std::byte> bytes) override {
    blocks_[name].assign(bytes.begin(), bytes.end());
  }

 private:
  std::map<BlockName, Bytes> blocks_;
};

// What all nodes of a run share, and what is known of their operations.
struct Sharing {
  SimulatedNetwork& network;
  SharedStore store;
  std::map<BlockName, RegisterHistory> histories;
  std::uint64_t next_value = 1;
  std::uint64_t writes = 0;
  std::uint64_t from_copies = 0;
  std::uint64_t delegated = 0;
  bool is_busy = true;
};

// A process on each node that opens, reads, writes and closes at random.
class SharingNode final : public HostedProgram {
 public:
  SharingNode(Sharing& sharing, NodeId self, const Member& member)
      : sharing_(sharing),
        authority_(member, self),
        home_(sharing.network.transport(self), authority_, sharing.store, {}),
        user_(sharing.network.transport(self), authority_, sharing.store, {}) {}

  void on_message(const Message& message, std::int64_t now_ns) override {
    if (room_of(message.type) == kForHome) home_.on_message(message, now_ns);
    if (room_of(message.type) == kForUser) user_.on_message(message, now_ns);
  }
  void on_view(std::int64_t now_ns) override {
    home_.on_view(now_ns);
    user_.on_view(now_ns);
  }
  void tick(std::int64_t now_ns) override {
    home_.tick(now_ns);
    user_.tick(now_ns);
    if (!sharing_.is_busy) return;
    for (std::uint32_t file = 0; file < kFiles; ++file) {
      if (sharing_.network.random().below(8) == 0) act(file_of(file), now_ns);
    }
  }
  FileUser& user() { return user_; }
  FileHome& home() { return home_; }

 private:
  void act(const LastingKey& file, std::int64_t now_ns) {
    RandomSource& random = sharing_.network.random();
    const BlockName name{file, BlockNumber{random.below(kBlocks)}};
    const std::uint32_t choice = random.below(20);
    if (choice == 0) {
      user_.open(file, now_ns, {});
    } else if (choice <= 4) {
      user_.close(file, now_ns, {});
    } else if (choice < 14) {
      read(name, now_ns);
    } else {
      write(name, now_ns);
    }
  }
  void read(const BlockName& name, std::int64_t now_ns) {
    const std::int64_t begin = sharing_.network.now_ns();
    sharing_.delegated += user_.has_delegation(name.file, now_ns) ? 1 : 0;
    sharing_.from_copies += user_.has_copy(name, now_ns) ? 1 : 0;
    user_.read(name, now_ns, [this, name, begin](bool is_done, const Bytes& bytes) {
      if (!is_done) return;
      sharing_.histories[name].read(value_of(bytes), begin, sharing_.network.now_ns());
    });
  }
  void write(const BlockName& name, std::int64_t now_ns) {
    if (user_.is_writing(name)) return;
    const std::uint64_t value = sharing_.next_value++;
    sharing_.histories[name].begin_write(value, sharing_.network.now_ns());
    user_.write(name, bytes_of(value), now_ns, [this, name, value](bool is_done, const Bytes&) {
      if (!is_done) return;
      ++sharing_.writes;
      sharing_.histories[name].end_write(value, sharing_.network.now_ns());
    });
  }

  Sharing& sharing_;
  const MemberAuthority authority_;
  FileHome home_;
  FileUser user_;
};

class SharingCluster {
 public:
  SharingCluster(std::uint32_t hosts, std::uint64_t seed)
      : cluster(hosts, seed), sharing{.network = cluster.network()} {
    cluster.host([this](NodeId self, const Member& member) {
      auto node = std::make_unique<SharingNode>(sharing, self, member);
      nodes[self] = node.get();
      return node;
    });
  }
  // Returns: why the run is wrong; empty if it is right.
  std::string problem() const {
    if (!cluster.violation().empty()) return cluster.violation();
    for (const auto& [name, history] : sharing.histories) {
      const std::string found = history.problem();
      if (!found.empty()) {
        return "file " + std::to_string(name.file.id.inode) + " block " +
               std::to_string(raw(name.block)) + ": " + found;
      }
    }
    return {};
  }

  SimulatedCluster cluster;
  Sharing sharing;
  std::map<NodeId, SharingNode*> nodes;
};

void run_with_faults(std::uint64_t seed, bool prints) {
  SharingCluster run(static_cast<std::uint32_t>(2 + seed % 4), seed);
  if (prints) run.cluster.network().keep_schedule();
  FaultMix mix = all_faults();
  mix.quiet_ns = 20 * kSecond;
  schedule_faults(run.cluster.network(), mix);
  run.cluster.run_until(mix.quiet_ns + 12 * kSecond);
  const std::uint64_t writes = run.sharing.writes;
  run.cluster.run_for(2 * kSecond);
  if (prints) {
    for (const std::string& line : run.cluster.network().schedule()) std::cout << line << "\n";
  }
  ASSERT_EQ(run.problem(), "") << "CAIRN_SEED=" << seed;
  ASSERT_GT(run.sharing.writes, writes) << "nothing is written any more; CAIRN_SEED=" << seed;
}

// The sanitizers slow a run down some twenty times, and a few runs show them all of the code.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 10;
#else
constexpr std::uint64_t kSeeds = 100;
#endif

TEST(OwnershipSimulation, EveryBlockIsLinearizableUnderFaults) {
  const char* one = std::getenv("CAIRN_SEED");
  if (one != nullptr) return run_with_faults(std::strtoull(one, nullptr, 10), true);
  const char* many = std::getenv("CAIRN_SEEDS");
  const std::uint64_t seeds = many == nullptr ? kSeeds : std::strtoull(many, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFatalFailure(); ++seed) {
    run_with_faults(seed, false);
  }
}

TEST(OwnershipSimulation, WithoutFaultsEverythingIsCarriedOutAndRightsAreUsed) {
  SharingCluster run(4, 1);
  run.cluster.run_until(60 * kSecond);
  EXPECT_EQ(run.problem(), "");
  EXPECT_GT(run.sharing.writes, 300U);
  EXPECT_GT(run.sharing.from_copies, 50U);
  EXPECT_GT(run.sharing.delegated, 0U);
  // All ends when nobody begins anything.
  const std::uint64_t begun = run.sharing.next_value - 1;
  run.sharing.is_busy = false;
  run.cluster.run_for(5 * kSecond);
  EXPECT_EQ(run.sharing.writes, begun);
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    run_.sharing.is_busy = false;
    ASSERT_GE(run_.cluster.run_until([&] { return run_.cluster.is_whole(); }, 10 * kSecond), 0);
  }
  void TearDown() override { EXPECT_EQ(run_.problem(), ""); }
  std::int64_t clock(NodeId node) { return run_.cluster.network().clock_ns(node); }
  FileUser& user(NodeId node) { return run_.nodes.at(node)->user(); }
  void open(NodeId node) {
    user(node).open(file_, clock(node), {});
    run_.cluster.run_for(300 * kMillisecond);
  }
  // Returns: how long it took; -1 for never.
  std::int64_t write(NodeId node, std::uint64_t value) {
    bool is_done = false;
    user(node).write(name_, bytes_of(value), clock(node),
                     [&](bool ok, const Bytes&) { is_done = ok; });
    return run_.cluster.run_until([&] { return is_done; }, 20 * kSecond);
  }
  std::uint64_t read(NodeId node) {
    std::uint64_t value = UINT64_MAX;
    user(node).read(name_, clock(node), [&](bool ok, const Bytes& bytes) {
      value = ok ? value_of(bytes) : UINT64_MAX;
    });
    run_.cluster.run_until([&] { return value != UINT64_MAX; }, 20 * kSecond);
    return value;
  }

  SharingCluster run_{4, 9};
  const LastingKey file_ = file_of(0);
  const BlockName name_{file_, BlockNumber{0}};
};

TEST_F(Files, AFileThatOneNodeHasOpenCostsNoMessage) {
  open(NodeId{2});
  ASSERT_TRUE(user(NodeId{2}).has_delegation(file_, clock(NodeId{2})));
  const std::uint64_t sent = user(NodeId{2}).requests_sent();
  EXPECT_EQ(sent, 1U);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    EXPECT_EQ(write(NodeId{2}, i), 0);
    EXPECT_EQ(read(NodeId{2}), i);
  }
  EXPECT_EQ(user(NodeId{2}).requests_sent(), sent);
  open(NodeId{3});
  EXPECT_FALSE(user(NodeId{2}).has_delegation(file_, clock(NodeId{2})));
  EXPECT_EQ(read(NodeId{3}), 1000U);
  EXPECT_GE(write(NodeId{3}, 1001), 0);
  EXPECT_EQ(read(NodeId{2}), 1001U);
}

TEST_F(Files, ACopyServesUntilAWriteRevokesIt) {
  EXPECT_GE(write(NodeId{2}, 5), 0);
  EXPECT_EQ(read(NodeId{3}), 5U);
  const std::uint64_t sent = user(NodeId{3}).requests_sent();
  EXPECT_EQ(read(NodeId{3}), 5U);
  EXPECT_EQ(user(NodeId{3}).requests_sent(), sent);
  EXPECT_GE(write(NodeId{2}, 6), 0);
  EXPECT_FALSE(user(NodeId{3}).has_copy(name_, clock(NodeId{3})));
  EXPECT_EQ(read(NodeId{3}), 6U);
}

TEST_F(Files, ACopyOfBeforeADelegationIsNotReadAfterIt) {
  EXPECT_EQ(read(NodeId{2}), 0U);
  open(NodeId{2});
  EXPECT_EQ(write(NodeId{2}, 9), 0);
  open(NodeId{3});
  EXPECT_EQ(read(NodeId{2}), 9U);
  EXPECT_GE(write(NodeId{3}, 10), 0);
  EXPECT_EQ(read(NodeId{2}), 10U);
}

TEST_F(Files, AHolderThatDoesNotAnswerHoldsAWriteUpForTwoLeasesOfACopy) {
  const MemberAuthority authority(run_.cluster.node(NodeId{4})->member(), NodeId{4});
  const NodeId home = authority.home_of(file_).node;
  const NodeId holder = home == NodeId{4} ? NodeId{3} : NodeId{4};
  EXPECT_EQ(read(holder), 0U);
  run_.cluster.network().pause(holder);
  const std::int64_t took = write(home, 7);
  EXPECT_GT(took, kSecond);
  EXPECT_LE(took, 2 * OwnershipTerms().copy_ns + 200 * kMillisecond);
  EXPECT_FALSE(user(holder).has_copy(name_, clock(holder)));
  run_.cluster.network().resume(holder);
}

TEST_F(Files, ADelegatedFileComesHomeWhenItsNodeDies) {
  const MemberAuthority authority(run_.cluster.node(NodeId{4})->member(), NodeId{4});
  const NodeId home = authority.home_of(file_).node;
  const NodeId delegate = home == NodeId{4} ? NodeId{2} : NodeId{4};
  open(delegate);
  EXPECT_EQ(write(delegate, 3), 0);
  run_.cluster.network().crash(delegate);
  const std::int64_t took = write(home, 8);
  EXPECT_GT(took, 3 * kSecond) << "the dead node may have been alive";
  EXPECT_LE(took, LeaseTerms().lease_ns + kSecond / 2);
  EXPECT_EQ(read(home), 8U);
}

}  // namespace
}  // namespace cairn::cluster
