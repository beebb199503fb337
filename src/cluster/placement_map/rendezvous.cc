// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement_map/rendezvous.h"

#include <utility>

#include "base/check.h"

namespace cairn::cluster {

HeaviestPair heaviest(std::uint64_t key, std::span<const NodeId> nodes) {
  // A tie, which 64 bits make improbable, goes to the lower number whatever the order of nodes is.
  const auto rank = [key](NodeId node) {
    return std::pair(rendezvous_weight(key, node), ~raw(node));
  };
  HeaviestPair pair;
  std::pair<std::uint64_t, std::uint32_t> first{};
  std::pair<std::uint64_t, std::uint32_t> second{};
  for (const NodeId node : nodes) {
    CAIRN_DCHECK(node != NodeId::kNone);
    const auto of_node = rank(node);
    if (pair.first == NodeId::kNone || of_node > first) {
      pair.second = std::exchange(pair.first, node);
      second = std::exchange(first, of_node);
    } else if (pair.second == NodeId::kNone || of_node > second) {
      pair.second = node;
      second = of_node;
    }
  }
  CAIRN_DCHECK(pair.first != pair.second || nodes.empty());
  return pair;
}

}  // namespace cairn::cluster
