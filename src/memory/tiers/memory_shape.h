// SPDX-License-Identifier: Apache-2.0
// The capacities of a node, from which the places of all its tables follow.
//
// Thread safety: a plain value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/ids.h"
#include "memory/arena/request_ring.h"

namespace cairn {

// A number that no other node has, chosen at random when the node is made. A pool file bears its
// node's (memory/tiers/pool_format.h).
struct NodeId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const NodeId&, const NodeId&) = default;
};

// Travels in the handshake: both sides compute the same memory map (memory/tiers/memory_map.h).
struct MemoryShape {
  std::uint64_t tier_bytes[kTiersMax] = {};  // [0] is the RAM tier; 0 = absent
  std::uint32_t clients_max = 1024;
  std::uint32_t objects_max = 0;  // 0: one per 4 KiB of the RAM tier
  // Open descriptions, and the holds of processes on them (memory/catalog/description_table.h).
  std::uint32_t descriptions_max = 65536;
  std::uint32_t holds_max = 4 * 65536;
  std::uint32_t requests_max = RequestRing::kSlotsMax;
  std::uint32_t huge_pages = 0;  // a HugePages value
  // The last tier, where scratch data goes that the others have no room for; 0: there is none.
  std::uint32_t swap_tier = 0;
  std::uint32_t checksums = 0;  // a Checksums value

  std::uint32_t slabs(unsigned tier) const {
    return static_cast<std::uint32_t>(tier_bytes[tier] / kBlockBytes);
  }
};
static_assert(std::is_trivially_copyable_v<MemoryShape>, "it travels in the handshake");
static_assert(sizeof(MemoryShape) == 8 * kTiersMax + 32, "without gaps, which nobody would set");

}  // namespace cairn
