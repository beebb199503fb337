// SPDX-License-Identifier: Apache-2.0
// Which rules speak of a file, and what they say together: for `cairn explain` and for decisions
// of the command and of the service. A preloaded program decides by a compiled table
// of its own, which must agree with this.
//
// A pattern is a glob as of --exclude (frontends/paths/path_filter.h): fnmatch() without flags,
// so that * and ? match slashes and leading dots as well, against the whole path, against the path
// below the buffered directory, and, when the pattern has no slash, against the last component.
// `{n}` in it stands for one or more digits, 19 at most. If there are several ways to match, the
// digits that begin first and, from there, are the most, give the generation.
//
// Thread safety: pure functions. Ownership: results refer to the rules that were passed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_rule.h"
#include "policy/rules/rule_property.h"

namespace cairn {

// How many `{n}` a pattern has.
unsigned count_generation_marks(std::string_view pattern);

// One text against one pattern, `{n}` included.
bool glob_matches(const std::string& pattern, const std::string& text);

// The file that a rule is matched against.
struct FileFacts {
  std::string path;  // absolute, as the kernel names it
  // the buffered directory above it, without a slash at its end; may be empty
  std::string directory;
  std::uint64_t size = 0;
  RuleAccess access = RuleAccess::kAny;  // kAny: not known; then rules for some access do not match
  std::optional<std::uint64_t> offset;   // without one, rules for a part of a file do not match
};

bool rule_matches(const FileRule& rule, const FileFacts& file);

// The number that `{n}` of the rule's pattern stands for in the file's path.
// Returns: nothing when the pattern has none or does not match.
std::optional<std::uint64_t> generation_of(const FileRule& rule, const FileFacts& file);

struct EffectiveHandling {
  FileRule properties;  // only what a rule sets; its conditions mean nothing
  std::array<const FileRule*, kRuleProperties> decided_by{};  // by RuleProperty; null: no rule

  const FileRule* rule_for(RuleProperty property) const {
    return decided_by[static_cast<unsigned>(property)];
  }
};

// The first rule that matches and sets a property decides it.
EffectiveHandling effective_handling(std::span<const FileRule> rules, const FileFacts& file);

}  // namespace cairn
