// SPDX-License-Identifier: Apache-2.0
// Rendezvous hashing: each node has a weight for each key, and the heaviest nodes have the key
// (Thaler, Ravishankar: "Using Name-Based Mappings to Increase Hit Rates", IEEE/ACM Transactions on
// Networking 6(1), 1998). A node that leaves gives up its own keys and no others move; one that
// joins takes 1/n of the keys, an equal share from each.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/cluster_ids.h"

namespace cairn::cluster {

// The mixing of splitmix64 (base/random_source.h), without its counter: each input bit changes half
// of the output bits.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// The same on every node and in every version of the table (kPartitionTableVersion).
constexpr std::uint64_t rendezvous_weight(std::uint64_t key, NodeId node) {
  return mixed(mixed(key + 0x9e3779b97f4a7c15ULL) ^
               (std::uint64_t{raw(node)} * 0xd1342543de82ef95ULL));
}

// The heaviest node and the next one. `second` is kNone where there is one node, both where there
// is none.
struct HeaviestPair {
  NodeId first = NodeId::kNone;
  NodeId second = NodeId::kNone;
};
HeaviestPair heaviest(std::uint64_t key, std::span<const NodeId> nodes);

}  // namespace cairn::cluster
