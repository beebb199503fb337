// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement_map/partition_table.h"

#include <algorithm>

#include "base/check.h"
#include "cluster/placement_map/rendezvous.h"

namespace cairn::cluster {

std::uint64_t hash_of(const LastingKey& key) {
  // Chained, so that equal numbers in different fields do not cancel.
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(key.kind) + 0x9e3779b97f4a7c15ULL);
  hash = mixed(hash ^ raw(key.store));
  hash = mixed(hash + key.id.inode);
  return mixed(hash ^ static_cast<std::uint64_t>(key.id.birth_ns));
}

PartitionId partition_of(std::uint64_t hash) {
  return static_cast<PartitionId>(hash & (kPartitions - 1));
}

PartitionTable::PartitionTable(std::span<const NodeId> members, std::uint32_t partitions)
    : checksum_(kPartitionTableVersion) {
  CAIRN_CHECK(partitions > 0 && partitions <= kPartitions && (partitions & (partitions - 1)) == 0);
  if (members.empty()) return;
  homes_.reserve(partitions);
  for (std::uint32_t i = 0; i < partitions; ++i) {
    const HeaviestPair pair = heaviest(i, members);
    CAIRN_CHECK(pair.first != NodeId::kNone);
    CAIRN_CHECK((pair.second == NodeId::kNone) == (members.size() == 1));
    homes_.push_back({pair.first, pair.second});
    checksum_ = mixed(checksum_ ^ (std::uint64_t{raw(pair.first)} << 32 | raw(pair.second)));
  }
}

const PartitionHome& PartitionTable::home(PartitionId partition) const {
  static constexpr PartitionHome kNowhere;
  if (homes_.empty()) return kNowhere;
  CAIRN_DCHECK(raw(partition) < kPartitions);
  return homes_[raw(partition) & (homes_.size() - 1)];
}

const PartitionHome& PartitionTable::home_of(const LastingKey& key) const {
  return home(partition_of(hash_of(key)));
}

}  // namespace cairn::cluster
