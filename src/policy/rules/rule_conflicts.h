// SPDX-License-Identifier: Apache-2.0
// Rules that cannot be meant: contradictions within a rule, between rules, and with the node.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_rule.h"
#include "policy/rules/rule_reader.h"

namespace cairn {

// What needs no node: a rule that sets nothing, empty ranges, what has no effect on a file that is
// not buffered, a trigger with a mode that has none, `keep` without {n}, what is said of a part of
// a file but holds for the whole, names given twice, equal conditions with unequal values.
std::vector<SchemaProblem> find_conflicts(const std::vector<PlacedRule>& rules);

struct TierCapacity {
  std::string name;
  std::uint64_t capacity_bytes = 0;
};

// What needs the node: tiers that it does not have, pins that its tiers cannot hold, and, for rules
// that come from elsewhere than a schema, unknown policies.
// Returns: one text per problem, "FILE:LINE: what is wrong; what would be right".
std::vector<std::string> check_rules(std::span<const FileRule> rules,
                                     std::span<const TierCapacity> tiers);

}  // namespace cairn
