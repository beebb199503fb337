// SPDX-License-Identifier: Apache-2.0
// Strong numbers of a cluster: which node, in which of its lives, in which view.
//
// Thread safety: values, no state.
#pragma once

#include <compare>
#include <cstdint>

namespace cairn::cluster {

// A host of the roster, counted from 1 in the roster's order. 0 names none.
enum class NodeId : std::uint32_t { kNone = 0 };
// The number of a view. Views of a cluster are numbered without gaps; 0 is before the first.
enum class Epoch : std::uint64_t { kNone = 0 };
// A life of a node: the epoch of the view that admitted it. A node that was declared dead comes
// back with a greater one. 0: not admitted yet.
enum class Incarnation : std::uint64_t { kNone = 0 };

constexpr std::uint32_t raw(NodeId node) { return static_cast<std::uint32_t>(node); }
constexpr std::uint64_t raw(Epoch epoch) { return static_cast<std::uint64_t>(epoch); }
constexpr std::uint64_t raw(Incarnation life) { return static_cast<std::uint64_t>(life); }
constexpr Epoch next(Epoch epoch) { return Epoch{raw(epoch) + 1}; }

// No roster is longer. Node numbers in messages are compared with it before anything else.
inline constexpr std::uint32_t kNodesMax = 16'384;

// What a message says of the node that has sent it.
struct NodeLife {
  NodeId node = NodeId::kNone;
  Incarnation incarnation = Incarnation::kNone;

  friend auto operator<=>(const NodeLife&, const NodeLife&) = default;
};

}  // namespace cairn::cluster
