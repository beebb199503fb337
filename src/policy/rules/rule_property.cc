// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_property.h"

#include <fmt/format.h>

#include <array>

#include "base/size_text.h"

namespace cairn {
namespace {

constexpr std::array<const char*, kRuleProperties> kPropertyNames = {
    "mode",     "trigger",  "durability", "tier",    "pin",  "policy",
    "priority", "prefetch", "keep",       "reserve", "array"};
constexpr std::array<const char*, 4> kAccessNames = {"any", "read", "write", "read-write"};
constexpr std::array<const char*, 5> kPrefetchNames = {"normal", "sequential", "random",
                                                       "will-need", "none"};

// A name that is missing at a table's end would be null.
static_assert(static_cast<unsigned>(RuleProperty::kArray) + 1 == kPropertyNames.size());
static_assert(kPropertyNames.back() != nullptr);
static_assert(static_cast<unsigned>(RuleAccess::kReadWrite) + 1 == kAccessNames.size());
static_assert(static_cast<unsigned>(PrefetchHint::kNone) + 1 == kPrefetchNames.size());

template <typename Value, std::size_t Count>
std::optional<Value> value_named(const std::array<const char*, Count>& names,
                                 std::string_view name) {
  for (std::size_t index = 0; index < Count; ++index) {
    if (name == names[index]) return static_cast<Value>(index);
  }
  return std::nullopt;
}

// Double-quoted YAML, which can hold any bytes of a path.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
      continue;
    }
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

// "name: {first: 1M, second: 2M}" without the ends that are not set.
std::string range_yaml(const char* name, const char* first, std::uint64_t low, const char* second,
                       std::uint64_t high) {
  std::string parts;
  if (low != 0) parts += fmt::format("{}: {}", first, format_size_exact(low));
  if (high != FileRule::kUnlimited) {
    parts += fmt::format("{}{}: {}", parts.empty() ? "" : ", ", second, format_size_exact(high));
  }
  return parts.empty() ? "" : fmt::format(", {}: {{{}}}", name, parts);
}

std::string rule_yaml(const FileRule& rule) {
  std::string text = fmt::format("  - {{source: {}", quoted(rule.source));
  if (!rule.name.empty()) text += ", name: " + quoted(rule.name);
  text += ", path: " + quoted(rule.pattern);
  text += range_yaml("size", "min", rule.size_min, "max", rule.size_max);
  text += range_yaml("offset", "begin", rule.offset_begin, "end", rule.offset_end);
  if (rule.access != RuleAccess::kAny) text += fmt::format(", access: {}", name_of(rule.access));
  std::string place;
  for (unsigned index = 0; index < kRuleProperties; ++index) {
    const auto property = static_cast<RuleProperty>(index);
    const auto value = property_text(rule, property);
    if (!value) continue;
    const std::string pair = fmt::format("{}: {}", name_of(property), quoted(*value));
    if (property == RuleProperty::kTier || property == RuleProperty::kPin) {
      place += (place.empty() ? "" : ", ") + pair;
    } else {
      text += ", " + pair;
    }
  }
  if (!place.empty()) text += fmt::format(", place: {{{}}}", place);
  return text + "}\n";
}

}  // namespace

const char* name_of(RuleProperty property) {
  return kPropertyNames[static_cast<unsigned>(property)];
}
const char* name_of(RuleAccess access) { return kAccessNames[static_cast<unsigned>(access)]; }
const char* name_of(PrefetchHint hint) { return kPrefetchNames[static_cast<unsigned>(hint)]; }

std::optional<RuleAccess> rule_access_named(std::string_view name) {
  return value_named<RuleAccess>(kAccessNames, name);
}
std::optional<PrefetchHint> prefetch_hint_named(std::string_view name) {
  return value_named<PrefetchHint>(kPrefetchNames, name);
}

std::optional<std::string> property_text(const FileRule& rule, RuleProperty property) {
  switch (property) {
    case RuleProperty::kMode:
      if (rule.mode) return name_of(*rule.mode);
      break;
    case RuleProperty::kTrigger:
      if (rule.trigger) return name_of(*rule.trigger);
      break;
    case RuleProperty::kDurability:
      if (rule.durability) return name_of(*rule.durability);
      break;
    case RuleProperty::kTier:
      return rule.tier;
    case RuleProperty::kPin:
      if (rule.pinned) return *rule.pinned ? "true" : "false";
      break;
    case RuleProperty::kPolicy:
      return rule.policy;
    case RuleProperty::kPriority:
      if (rule.priority) return std::to_string(*rule.priority);
      break;
    case RuleProperty::kPrefetch:
      if (rule.prefetch) return name_of(*rule.prefetch);
      break;
    case RuleProperty::kKeep:
      if (rule.keep) return std::to_string(*rule.keep);
      break;
    case RuleProperty::kReserve:
      if (rule.reserve) return reservation_text(*rule.reserve);
      break;
    case RuleProperty::kArray:
      return rule.array;
  }
  return std::nullopt;
}

void copy_property(const FileRule& from, RuleProperty property, FileRule* to) {
  const auto copy = [](const auto& value, auto* target) {
    if (value) *target = value;
  };
  switch (property) {
    case RuleProperty::kMode:
      return copy(from.mode, &to->mode);
    case RuleProperty::kTrigger:
      return copy(from.trigger, &to->trigger);
    case RuleProperty::kDurability:
      return copy(from.durability, &to->durability);
    case RuleProperty::kTier:
      return copy(from.tier, &to->tier);
    case RuleProperty::kPin:
      return copy(from.pinned, &to->pinned);
    case RuleProperty::kPolicy:
      return copy(from.policy, &to->policy);
    case RuleProperty::kPriority:
      return copy(from.priority, &to->priority);
    case RuleProperty::kPrefetch:
      return copy(from.prefetch, &to->prefetch);
    case RuleProperty::kKeep:
      return copy(from.keep, &to->keep);
    case RuleProperty::kReserve:
      return copy(from.reserve, &to->reserve);
    case RuleProperty::kArray:
      return copy(from.array, &to->array);
  }
}

bool same_conditions(const FileRule& left, const FileRule& right) {
  return left.pattern == right.pattern && left.size_min == right.size_min &&
         left.size_max == right.size_max && left.offset_begin == right.offset_begin &&
         left.offset_end == right.offset_end && left.access == right.access;
}

std::string rule_text(const FileRule& rule) {
  const std::string name =
      rule.name.empty() ? std::string("the rule") : fmt::format("rule \"{}\"", rule.name);
  return rule.source.empty() ? name : fmt::format("{} ({})", name, rule.source);
}

std::string rules_yaml(std::span<const FileRule> rules) {
  std::string text = "rules:\n";
  for (const FileRule& rule : rules) text += rule_yaml(rule);
  return text;
}

}  // namespace cairn
