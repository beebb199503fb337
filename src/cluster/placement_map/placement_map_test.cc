// SPDX-License-Identifier: Apache-2.0
// Balance and movement of partitions, and where each mapping policy puts blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/placement_map/block_mapping.h"
#include "cluster/placement_map/partition_table.h"
#include "cluster/placement_map/rendezvous.h"

namespace cairn::cluster {
namespace {

std::vector<NodeId> nodes_to(std::uint32_t last) {
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 1; i <= last; ++i) nodes.push_back(NodeId{i});
  return nodes;
}

std::vector<NodeId> without(std::vector<NodeId> nodes, NodeId gone) {
  std::erase(nodes, gone);
  return nodes;
}

TEST(PartitionTable, OfOneNodeHasNoBackupAndOfNoneNoPrimary) {
  const PartitionTable one(nodes_to(1));
  EXPECT_EQ(one.home(PartitionId{17}), (PartitionHome{NodeId{1}, NodeId::kNone}));
  EXPECT_EQ(PartitionTable().home(PartitionId{17}), PartitionHome{});
}

TEST(PartitionTable, IsBalancedFromTwoNodesToSixtyFour) {
  for (std::uint32_t nodes = 2; nodes <= 64; ++nodes) {
    const PartitionTable table(nodes_to(nodes));
    std::map<NodeId, double> primaries;
    std::map<NodeId, double> backups;
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const PartitionHome& home = table.home(static_cast<PartitionId>(p));
      ASSERT_NE(home.primary, home.backup);
      ++primaries[home.primary];
      ++backups[home.backup];
    }
    // A node's share is binomial; 4.5 standard deviations leave out none of these 4,000 shares.
    const double share = static_cast<double>(kPartitions) / nodes;
    const double most = 4.5 * std::sqrt(share);
    ASSERT_EQ(primaries.size(), nodes);
    for (const auto& [node, count] : primaries) EXPECT_NEAR(count, share, most) << nodes;
    for (const auto& [node, count] : backups) EXPECT_NEAR(count, share, most) << nodes;
  }
}

TEST(PartitionTable, ADeathMovesOnlyTheDeadNodesPartitionsAndPromotesBackups) {
  for (const std::uint32_t nodes : {2U, 3U, 5U, 16U, 64U}) {
    const PartitionTable before(nodes_to(nodes));
    const NodeId dead{1 + nodes / 2};
    const PartitionTable after(without(nodes_to(nodes), dead));
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const PartitionHome& was = before.home(static_cast<PartitionId>(p));
      const PartitionHome& is = after.home(static_cast<PartitionId>(p));
      if (was.primary == dead) {
        EXPECT_EQ(is.primary, was.backup);
      } else {
        EXPECT_EQ(is.primary, was.primary);
        EXPECT_TRUE(was.backup == dead || is.backup == was.backup);
      }
    }
  }
}

TEST(PartitionTable, AJoinTakesOneShareFromAll) {
  for (const std::uint32_t nodes : {1U, 3U, 15U, 63U}) {
    const PartitionTable before(nodes_to(nodes));
    const PartitionTable after(nodes_to(nodes + 1));
    double moved = 0;
    std::set<NodeId> givers;
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const NodeId was = before.home(static_cast<PartitionId>(p)).primary;
      const NodeId is = after.home(static_cast<PartitionId>(p)).primary;
      if (was == is) continue;
      EXPECT_EQ(is, NodeId{nodes + 1});
      givers.insert(was);
      ++moved;
    }
    const double share = kPartitions / (nodes + 1.0);
    EXPECT_NEAR(moved, share, 4.5 * std::sqrt(share));
    // A third of 63 nodes happens to give none of 64 partitions.
    EXPECT_GE(givers.size(), (nodes + 1) / 2) << nodes;
  }
}

TEST(PartitionTable, IsTheSameWhateverTheOrderOfMembers) {
  std::vector<NodeId> reversed = nodes_to(9);
  std::ranges::reverse(reversed);
  const PartitionTable table(nodes_to(9));
  EXPECT_EQ(table.checksum(), PartitionTable(reversed).checksum());
  EXPECT_NE(table.checksum(), PartitionTable(nodes_to(8)).checksum());
  // Nodes of different builds share a cluster: a change of this number needs another version.
  EXPECT_EQ(kPartitionTableVersion, 1U);
  EXPECT_EQ(PartitionTable(nodes_to(3)).checksum(), PartitionTable(nodes_to(3)).checksum());
}

TEST(PartitionTable, SpreadsInodesThatFollowEachOther) {
  std::vector<int> counts(kPartitions);
  LastingKey key{.store = StoreName{77}};
  for (std::uint64_t inode = 0; inode < kPartitions * 64; ++inode) {
    key.id.inode = 1'000'000 + inode;
    ++counts[raw(partition_of(hash_of(key)))];
  }
  EXPECT_GT(*std::ranges::min_element(counts), 64 - 5 * 8);
  EXPECT_LT(*std::ranges::max_element(counts), 64 + 6 * 8);
}

TEST(PartitionTable, EachFieldOfAKeyCounts) {
  const LastingKey key{ObjectKind::kFile, StoreName{1}, {2, 3}};
  std::set<std::uint64_t> hashes = {hash_of(key)};
  hashes.insert(hash_of({ObjectKind::kScratch, StoreName{1}, {2, 3}}));
  hashes.insert(hash_of({ObjectKind::kFile, StoreName{2}, {2, 3}}));
  hashes.insert(hash_of({ObjectKind::kFile, StoreName{1}, {3, 3}}));
  hashes.insert(hash_of({ObjectKind::kFile, StoreName{1}, {2, 4}}));
  hashes.insert(hash_of({ObjectKind::kFile, StoreName{2}, {1, 3}}));
  EXPECT_EQ(hashes.size(), 6U);
}

NodeId mapped(const char* policy, std::uint32_t block, std::uint32_t of_blocks = 0,
              NodeId writer = NodeId{3}) {
  const Result<MappingPolicy> parsed = parse_mapping(policy);
  EXPECT_TRUE(parsed.is_ok()) << policy;
  return node_for(*parsed, {1234, BlockNumber{block}, of_blocks, writer}, nodes_to(4));
}

// The nodes of blocks 0, 1, ..., as letters from the object's first node on.
std::string pattern(const char* policy, std::uint32_t blocks, std::uint32_t expected) {
  std::string text;
  const std::uint32_t first = raw(mapped(policy, 0, expected));
  for (std::uint32_t b = 0; b < blocks; ++b) {
    text += static_cast<char>('a' + (raw(mapped(policy, b, expected)) + 4 - first) % 4);
  }
  return text;
}

TEST(BlockMapping, FollowsThePaper) {
  EXPECT_EQ(pattern("round-robin", 9, 9), "abcdabcda");
  EXPECT_EQ(pattern("block", 12, 12), "aaabbbcccddd");
  EXPECT_EQ(pattern("block", 10, 10), "aaabbbcccd");
  EXPECT_EQ(pattern("block", 10, 4), "abcdabcdab") << "behind the expected end";
  EXPECT_EQ(pattern("block", 5, 0), "abcda") << "no end is expected";
  EXPECT_EQ(pattern("block-cyclic:2", 10, 10), "aabbccddaa");
  EXPECT_EQ(pattern("block-cyclic:1", 5, 5), pattern("round-robin", 5, 5));
}

TEST(BlockMapping, LocalIsTheWriterAsLongAsItIsAMember) {
  EXPECT_EQ(mapped("local", 7), NodeId{3});
  EXPECT_EQ(mapped("local", 7, 0, NodeId{9}), mapped("random", 7));
}

TEST(BlockMapping, RandomIsUniformAndMovesLittle) {
  std::map<NodeId, int> counts;
  int moved = 0;
  for (std::uint32_t b = 0; b < 10'000; ++b) {
    const BlockToMap block{99, BlockNumber{b}, 0, NodeId{1}};
    const NodeId node = node_for({MappingKind::kRandom}, block, nodes_to(8));
    ++counts[node];
    moved += node_for({MappingKind::kRandom}, block, nodes_to(7)) != node;
  }
  for (const auto& [node, count] : counts) EXPECT_NEAR(count, 1250, 160);
  EXPECT_EQ(moved, counts[NodeId{8}]);
}

TEST(BlockMapping, SmallObjectsBeginOnDifferentNodes) {
  std::map<NodeId, int> counts;
  for (std::uint64_t object = 0; object < 4000; ++object) {
    ++counts[node_for({MappingKind::kRoundRobin}, {object, BlockNumber{0}}, nodes_to(4))];
  }
  for (const auto& [node, count] : counts) EXPECT_NEAR(count, 1000, 140);
}

TEST(BlockMapping, IsReadAsItIsWritten) {
  for (const char* text : {"local", "round-robin", "random", "block", "block-cyclic:16"}) {
    const Result<MappingPolicy> policy = parse_mapping(text);
    ASSERT_TRUE(policy.is_ok()) << text;
    EXPECT_EQ(text_of(*policy), text);
  }
  for (const char* text :
       {"", "Local", "block:3", "block-cyclic", "block-cyclic:", "local:", "block-cyclic:0",
        "block-cyclic:2x", "block-cyclic:-1", "block-cyclic:99999999999"}) {
    const Result<MappingPolicy> policy = parse_mapping(text);
    ASSERT_FALSE(policy.is_ok()) << text;
    EXPECT_EQ(policy.status().code(), StatusCode::kInvalid);
    EXPECT_NE(policy.status().message().find("block-cyclic:N"), std::string::npos);
  }
}

}  // namespace
}  // namespace cairn::cluster
