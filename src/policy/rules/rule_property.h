// SPDX-License-Identifier: Apache-2.0
// The properties that a rule can set, one by one: names, values as text, copying. And rules as a
// YAML schema.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_rule.h"

namespace cairn {

enum class RuleProperty : std::uint8_t {
  kMode = 0,
  kTrigger,
  kDurability,
  kTier,
  kPin,
  kPolicy,
  kPriority,
  kPrefetch,
  kKeep,
  kReserve,
  kArray
};
inline constexpr unsigned kRuleProperties = 11;

// As in schemas: "tier", "pin", "mode".
const char* name_of(RuleProperty property);
const char* name_of(RuleAccess access);
const char* name_of(PrefetchHint hint);
std::optional<RuleAccess> rule_access_named(std::string_view name);
std::optional<PrefetchHint> prefetch_hint_named(std::string_view name);

// Returns: the value as a schema has it; nothing when the rule does not set the property.
std::optional<std::string> property_text(const FileRule& rule, RuleProperty property);

// Has no effect when `from` does not set the property.
void copy_property(const FileRule& from, RuleProperty property, FileRule* to);

// True when both rules speak of the same files and the same bytes of them.
bool same_conditions(const FileRule& left, const FileRule& right);

// For messages: `rule "checkpoints" (FILE:LINE)`, or what of it is known.
std::string rule_text(const FileRule& rule);

// The rules as a YAML schema with the source of each, which parse_schema_text() reads again with
// SchemaOrigin::kResolved: how a node's configuration file carries them.
std::string rules_yaml(std::span<const FileRule> rules);

}  // namespace cairn
