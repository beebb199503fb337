// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/rule_json.h"

#include <array>

namespace cairn::node {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 5> kHints = {"normal", "sequential", "random", "will-need",
                                               "none"};
constexpr std::array<const char*, 4> kAccesses = {"any", "read", "write", "read-write"};

// Reads fields one after the other and remembers the first that is not what it should be.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  template <typename Take>
  void text(const char* field, Take&& take) {
    const Json* value = find(field);
    if (value == nullptr) return;
    if (!value->is_string() || !take(value->get<std::string>())) fail(field);
  }
  template <typename Take>
  void number(const char* field, std::uint64_t most, Take&& take) {
    const Json* value = find(field);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most) return fail(field);
    take(value->get<std::uint64_t>());
  }
  void flag(const char* field, std::optional<bool>* target) {
    const Json* value = find(field);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(field);
    *target = value->get<bool>();
  }
  const std::string& failed() const { return failed_; }

 private:
  const Json* find(const char* field) const {
    const auto found = object_.find(field);
    return found == object_.end() ? nullptr : &*found;
  }
  void fail(const char* field) {
    if (failed_.empty()) failed_ = field;
  }

  const Json& object_;
  std::string failed_;
};

// Stores what `parse` makes of the text, false when it makes nothing of it.
template <typename Value, typename Parse>
auto into(std::optional<Value>* target, Parse parse) {
  return [target, parse](const std::string& text) {
    *target = parse(text);
    return target->has_value();
  };
}

std::optional<RuleAccess> access_named(std::string_view name) {
  for (unsigned index = 0; index < kAccesses.size(); ++index) {
    if (name == kAccesses[index]) return static_cast<RuleAccess>(index);
  }
  return std::nullopt;
}

std::optional<std::string> as_text(const std::string& text) { return text; }

}  // namespace

const char* name_of(PrefetchHint hint) { return kHints[static_cast<unsigned>(hint)]; }

std::optional<PrefetchHint> prefetch_hint_named(std::string_view name) {
  for (unsigned index = 0; index < kHints.size(); ++index) {
    if (name == kHints[index]) return static_cast<PrefetchHint>(index);
  }
  return std::nullopt;
}

Json rule_to_json(const FileRule& rule) {
  Json object = {{"pattern", rule.pattern}};
  if (rule.size_min != 0) object["size_min"] = rule.size_min;
  if (rule.size_max != FileRule::kUnlimited) object["size_max"] = rule.size_max;
  if (rule.offset_begin != 0) object["offset_begin"] = rule.offset_begin;
  if (rule.offset_end != FileRule::kUnlimited) object["offset_end"] = rule.offset_end;
  if (rule.access != RuleAccess::kAny)
    object["access"] = kAccesses[static_cast<unsigned>(rule.access)];
  if (rule.mode) object["mode"] = cairn::name_of(*rule.mode);
  if (rule.trigger) object["trigger"] = cairn::name_of(*rule.trigger);
  if (rule.durability) object["durability"] = cairn::name_of(*rule.durability);
  if (rule.tier) object["tier"] = *rule.tier;
  if (rule.policy) object["policy"] = *rule.policy;
  if (rule.pinned) object["pinned"] = *rule.pinned;
  if (rule.priority) object["priority"] = *rule.priority;
  if (rule.prefetch) object["prefetch"] = name_of(*rule.prefetch);
  if (rule.keep) object["keep"] = *rule.keep;
  if (rule.reserve) object["reserve"] = reservation_text(*rule.reserve);
  if (rule.array) object["array"] = *rule.array;
  if (!rule.name.empty()) object["name"] = rule.name;
  if (!rule.source.empty()) object["source"] = rule.source;
  return object;
}

Result<FileRule> rule_from_json(const Json& object) {
  if (!object.is_object()) return Status(StatusCode::kInvalid, "a rule is an object");
  FileRule rule;
  std::optional<std::string> text;
  std::optional<RuleAccess> access;
  Reader reader(object);
  reader.text("pattern", into(&text, as_text));
  rule.pattern = text.value_or("");
  reader.number("size_min", FileRule::kUnlimited, [&](auto value) { rule.size_min = value; });
  reader.number("size_max", FileRule::kUnlimited, [&](auto value) { rule.size_max = value; });
  reader.number("offset_begin", FileRule::kUnlimited,
                [&](auto value) { rule.offset_begin = value; });
  reader.number("offset_end", FileRule::kUnlimited, [&](auto value) { rule.offset_end = value; });
  reader.text("access", into(&access, access_named));
  rule.access = access.value_or(RuleAccess::kAny);
  reader.text("mode", into(&rule.mode, buffering_mode_named));
  reader.text("trigger", into(&rule.trigger, flush_trigger_named));
  reader.text("durability", into(&rule.durability, durability_named));
  reader.text("tier", into(&rule.tier, as_text));
  reader.text("policy", into(&rule.policy, as_text));
  reader.flag("pinned", &rule.pinned);
  reader.number("priority", 7, [&](auto value) { rule.priority = static_cast<unsigned>(value); });
  reader.text("prefetch", into(&rule.prefetch, prefetch_hint_named));
  reader.number("keep", UINT32_MAX, [&](auto value) { rule.keep = static_cast<unsigned>(value); });
  reader.text("reserve", into(&rule.reserve, parse_reservation));
  reader.text("array", into(&rule.array, as_text));
  reader.text("name", into(&text, as_text));
  if (object.contains("name")) rule.name = text.value_or("");
  reader.text("source", into(&text, as_text));
  if (object.contains("source")) rule.source = text.value_or("");
  if (rule.pattern.empty()) return Status(StatusCode::kInvalid, "a rule needs a pattern");
  if (reader.failed().empty()) return rule;
  return Status(StatusCode::kInvalid,
                "rule for " + rule.pattern + ": " + reader.failed() + " is not understood");
}

}  // namespace cairn::node
