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

// Finds the problems that need no node: a rule that sets nothing, empty ranges, fields without
// effect on a file that is not buffered, a trigger with a mode that has none, `keep` without {n},
// fields of the whole file in a rule for a part, names given twice, equal conditions with unequal
// values.
std::vector<SchemaProblem> find_conflicts(const std::vector<PlacedRule>& rules);

struct TierCapacity {
  std::string name;
  std::uint64_t capacity_bytes = 0;
};

// Finds the problems that need the node: tiers that it does not have, pins that its tiers cannot
// hold, and, for rules that come from elsewhere than a schema, unknown policies.
// Returns: one text per problem, "FILE:LINE: what is wrong; what would be right".
std::vector<std::string> check_rules(std::span<const FileRule> rules,
                                     std::span<const TierCapacity> tiers);

}  // namespace cairn
