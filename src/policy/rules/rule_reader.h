// SPDX-License-Identifier: Apache-2.0
// From the tree of a schema to its rules: every entry known, every value valid. Contradictions are
// found afterwards (policy/rules/rule_conflicts.h).
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_rule.h"
#include "policy/rules/schema_tree.h"

namespace cairn {

// A rule that still knows where each part of it stands.
struct PlacedRule {
  FileRule rule;
  unsigned line = 1;
  bool has_mistake = false;
  std::map<std::string, unsigned> lines;  // "size", "tier", "never-buffer": what was given, validly

  bool has(const std::string& field) const { return lines.count(field) != 0; }
  unsigned line_of(const std::string& field) const {
    const auto found = lines.find(field);
    return found != lines.end() ? found->second : line;
  }
};

struct ReadRules {
  std::vector<PlacedRule> rules;
  std::vector<SchemaProblem> problems;
};

// `resolved`: the tree was written by rules_yaml(), whose rules bring their source along.
ReadRules read_rules(const SchemaEntry& root, bool resolved);

// Returns: empty when a rule may name this placement policy, else what is wrong; what would be
// right. Does not check whether a plugin exists.
std::string policy_problem(const std::string& name);

}  // namespace cairn
