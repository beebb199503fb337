// SPDX-License-Identifier: Apache-2.0
// Which node a new block of an object goes to: the mapping policies of "Performance Models for a
// Two-tiered Storage System", section 3 (round-robin, random by hash, block, block-cyclic; their
// definitions are the usual ones of distributed arrays), and `local`.
//
//   policy           block b of an object of B blocks, on n nodes
//   local            the node that writes it first
//   round-robin      b mod n
//   random           a rendezvous hash of object and block: uniform for any pattern of accesses
//   block            b div ceil(B / n): equal runs, for pages that one process accesses alone
//   block-cyclic:N   (b div N) mod n
//
// The paper numbers nodes from 0. Here the first node of an object is chosen by its hash, so that
// many small objects do not all begin on the first node; local and random need no first node.
// Blocks behind the expected end, for `block`, go on in runs of the same length, around.
//
// Where a block lies once it has been written is in the metadata of its object and not computed
// again: when members change, only new blocks go elsewhere.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/cluster_ids.h"
#include "base/ids.h"
#include "base/status.h"

namespace cairn::cluster {

enum class MappingKind : std::uint8_t { kLocal = 0, kRoundRobin, kRandom, kBlock, kBlockCyclic };

struct MappingPolicy {
  MappingKind kind = MappingKind::kLocal;
  std::uint32_t cycle_blocks = 0;  // N of block-cyclic:N; 0 with all others

  friend bool operator==(const MappingPolicy&, const MappingPolicy&) = default;
};

// The policy that a text names: "local", "round-robin", "random", "block", "block-cyclic:N".
// Errors: kInvalid, with what may be written.
Result<MappingPolicy> parse_mapping(std::string_view text);
std::string text_of(const MappingPolicy& policy);

// A block that is to be placed.
struct BlockToMap {
  std::uint64_t object_hash = 0;  // hash_of() its key (partition_table.h)
  BlockNumber block{};
  // The blocks that the object will have, as far as known; 0: unknown, one run has one block then.
  std::uint32_t object_blocks = 0;
  NodeId writer = NodeId::kNone;  // whose client writes it
};

// Requires: members of the view in ascending order, at least one.
NodeId node_for(const MappingPolicy& policy, const BlockToMap& block,
                std::span<const NodeId> members);

}  // namespace cairn::cluster
