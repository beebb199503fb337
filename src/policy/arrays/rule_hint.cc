// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/rule_hint.h"

#include "base/check.h"

namespace cairn::arrays {

Result<ArrayHint> hint_of(const FileRule& rule) {
  CAIRN_CHECK(rule.array.has_value());
  const std::string& pattern = rule.pattern;
  const bool is_below_some =
      pattern.find('/') != std::string::npos && pattern.front() != '/' && pattern.front() != '*';
  auto hint = parse_array_hint((is_below_some ? "*/" : "") + pattern + ":" + rule.array.value());
  if (!hint) return hint.status();
  CAIRN_RETURN_IF_ERROR(hint->check());
  return hint;
}

}  // namespace cairn::arrays
