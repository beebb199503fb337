// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement_map/block_mapping.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "cluster/placement_map/rendezvous.h"

namespace cairn::cluster {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"local", "round-robin", "random", "block",
                                                    "block-cyclic"};
static_assert(kNames.size() == static_cast<std::size_t>(MappingKind::kBlockCyclic) + 1);

Status bad_mapping(std::string_view text) {
  return {StatusCode::kInvalid,
          "no mapping is called \"" + std::string(text) +
              "\"; write local, round-robin, random, block or block-cyclic:N, with N blocks of 1 "
              "or more"};
}

// How many nodes behind the object's first one.
std::uint64_t steps_of(const MappingPolicy& policy, const BlockToMap& block, std::uint64_t nodes) {
  const std::uint64_t number = raw(block.block);
  switch (policy.kind) {
    case MappingKind::kRoundRobin:
      return number;
    case MappingKind::kBlock:
      return number / std::max<std::uint64_t>(1, (block.object_blocks + nodes - 1) / nodes);
    case MappingKind::kBlockCyclic:
      CAIRN_CHECK(policy.cycle_blocks > 0);
      return number / policy.cycle_blocks;
    case MappingKind::kLocal:
    case MappingKind::kRandom:
      break;
  }
  CAIRN_CHECK(false);
  return 0;
}

}  // namespace

Result<MappingPolicy> parse_mapping(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto found = std::ranges::find(kNames, text.substr(0, colon));
  if (found == kNames.end()) return bad_mapping(text);
  MappingPolicy policy{.kind = static_cast<MappingKind>(found - kNames.begin())};
  const bool is_cyclic = policy.kind == MappingKind::kBlockCyclic;
  if ((colon != std::string_view::npos) != is_cyclic) return bad_mapping(text);
  if (is_cyclic) {
    const std::string_view number = text.substr(colon + 1);
    const char* end = number.data() + number.size();
    const auto [last, error] = std::from_chars(number.data(), end, policy.cycle_blocks);
    if (error != std::errc() || last != end || policy.cycle_blocks == 0) return bad_mapping(text);
  }
  return policy;
}

std::string text_of(const MappingPolicy& policy) {
  CAIRN_CHECK(static_cast<std::size_t>(policy.kind) < kNames.size());
  std::string text(kNames[static_cast<std::size_t>(policy.kind)]);
  if (policy.kind == MappingKind::kBlockCyclic) text += ":" + std::to_string(policy.cycle_blocks);
  return text;
}

NodeId node_for(const MappingPolicy& policy, const BlockToMap& block,
                std::span<const NodeId> members) {
  CAIRN_CHECK(!members.empty());
  CAIRN_DCHECK(std::ranges::is_sorted(members));
  if (policy.kind == MappingKind::kLocal) {
    // A writer that is no member any more places nothing; its block then goes where random would.
    if (std::ranges::binary_search(members, block.writer)) return block.writer;
  }
  if (policy.kind == MappingKind::kLocal || policy.kind == MappingKind::kRandom) {
    return heaviest(mixed(block.object_hash) + raw(block.block), members).first;
  }
  const std::uint64_t nodes = members.size();
  const std::uint64_t first = mixed(block.object_hash) % nodes;
  return members[(first + steps_of(policy, block, nodes)) % nodes];
}

}  // namespace cairn::cluster
