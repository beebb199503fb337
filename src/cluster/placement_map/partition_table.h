// SPDX-License-Identifier: Apache-2.0
// Which node answers for an object: objects hash to partitions, partitions map to nodes.
//
//   LastingKey --hash--> partition (one of 4096) --table--> primary, backup
//
// The table is a function of the members of a view alone, so that a view need not carry it: every
// node computes it, once per view (4096 rows x members x 2 ns: 0.1 ms for 16 members, 10 ms for
// 1,000), and the view carries its checksum, so that two that differ are found out. A look-up is
// one hash and one load.
//
// When a primary dies, its backup has the next highest weight and becomes primary where the copy
// is; only partitions of the dead node change.
//
// Thread safety: immutable after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cluster_ids.h"
#include "base/object_key.h"

namespace cairn::cluster {

enum class PartitionId : std::uint16_t {};
constexpr std::uint32_t raw(PartitionId id) { return static_cast<std::uint32_t>(id); }

inline constexpr std::uint32_t kPartitions = 4096;
static_assert((kPartitions & (kPartitions - 1)) == 0, "a partition is the low bits of a hash");
// Counted up when a key or a node would get another weight: nodes of both versions cannot share a
// cluster.
inline constexpr std::uint32_t kPartitionTableVersion = 1;

// The hash of an object: the same on every node and after a reboot.
std::uint64_t hash_of(const LastingKey& key);
PartitionId partition_of(std::uint64_t hash);

struct PartitionHome {
  NodeId primary = NodeId::kNone;
  NodeId backup = NodeId::kNone;  // kNone in a cluster of one

  friend bool operator==(const PartitionHome&, const PartitionHome&) = default;
};

class PartitionTable {
 public:
  // Without members nobody answers for anything.
  PartitionTable() = default;
  // Requires: no member twice. A smaller number of partitions, a power of two, suits simulations.
  explicit PartitionTable(std::span<const NodeId> members, std::uint32_t partitions = kPartitions);

  std::uint32_t partitions() const { return static_cast<std::uint32_t>(homes_.size()); }
  const PartitionHome& home(PartitionId partition) const;
  const PartitionHome& home_of(const LastingKey& key) const;
  std::uint64_t checksum() const { return checksum_; }

 private:
  std::vector<PartitionHome> homes_;
  std::uint64_t checksum_ = 0;
};

}  // namespace cairn::cluster
