// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_conflicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/nearest_name.h"
#include "base/size_text.h"
#include "policy/arrays/rule_hint.h"
#include "policy/rules/rule_match.h"
#include "policy/rules/rule_property.h"

namespace cairn {
namespace {

// "rule "a" (line 3)"; the file is that of the message.
std::string named(const PlacedRule& placed) {
  if (placed.rule.name.empty()) return fmt::format("the rule of line {}", placed.line);
  return fmt::format("rule \"{}\" (line {})", placed.rule.name, placed.line);
}

// The dataset that an array property speaks of. Requires: the rule has one.
std::string dataset_of(const FileRule& rule) {
  const auto hint = arrays::hint_of(rule);
  return hint ? hint->dataset : std::string();
}

class ConflictFinder {
 public:
  explicit ConflictFinder(const std::vector<PlacedRule>& rules) : rules_(rules) {}

  std::vector<SchemaProblem> find() {
    for (const PlacedRule& placed : rules_) {
      check_ranges(placed);
      check_effect(placed);
      check_trigger(placed);
      check_keep(placed);
      check_part(placed);
      check_array(placed);
    }
    check_names();
    check_pairs();
    return std::move(problems_);
  }

 private:
  void problem(unsigned line, std::string text) { problems_.push_back({line, std::move(text)}); }

  void check_ranges(const PlacedRule& placed) {
    const FileRule& rule = placed.rule;
    if (rule.size_min > rule.size_max) {
      problem(placed.line_of("size"),
              fmt::format("size: min ({}) is above max ({}); no file has such a size",
                          format_size_exact(rule.size_min), format_size_exact(rule.size_max)));
    }
    if (rule.offset_begin >= rule.offset_end) {
      problem(
          placed.line_of("offset"),
          fmt::format("offset: begin ({}) is not below end ({}); the end does not belong to "
                      "the range",
                      format_size_exact(rule.offset_begin), format_size_exact(rule.offset_end)));
    } else if (rule.offset_begin > 0 && rule.offset_begin >= rule.size_max) {
      problem(placed.line_of("offset"),
              fmt::format("offset: a file of at most {} has no byte at {}; raise size max or lower "
                          "begin",
                          format_size_exact(rule.size_max), format_size_exact(rule.offset_begin)));
    }
  }

  // A bypassed file has no bucket, so these fields have no effect on it.
  void check_effect(const PlacedRule& placed) {
    const bool never = placed.has("never-buffer");
    if (never && placed.has("mode")) {
      problem(placed.line_of("mode"),
              "mode: never-buffer is the mode bypass already; keep one of the two");
    }
    const bool bypass = never || placed.rule.mode == BufferingMode::kBypass;
    static constexpr std::array<const char*, 10> kOfBuckets = {
        "tier",     "pin",      "trigger", "durability", "policy",
        "priority", "prefetch", "keep",    "reserve",    "array"};
    static_assert(kOfBuckets.size() + 1 == kRuleProperties, "all properties but the mode");
    bool sets_anything = never || placed.has("mode");
    for (const char* field : kOfBuckets) {
      if (!placed.has(field)) continue;
      sets_anything = true;
      if (!bypass) continue;
      problem(placed.line_of(field),
              fmt::format("{}: has no meaning for a file that is not buffered ({}); remove one",
                          field, never ? "never-buffer" : "mode bypass"));
    }
    if (!sets_anything && !placed.has_mistake) {
      problem(placed.line, "a rule that sets nothing; add a mode, a place, a policy, ...");
    }
  }

  void check_trigger(const PlacedRule& placed) {
    const FileRule& rule = placed.rule;
    if (!rule.trigger || !rule.mode) return;
    if (*rule.mode == BufferingMode::kAsync || *rule.mode == BufferingMode::kBypass) return;
    problem(placed.line_of("trigger"),
            fmt::format("trigger: belongs to mode persistent-async, not to {}; remove it or change "
                        "the mode",
                        name_of(*rule.mode)));
  }

  void check_keep(const PlacedRule& placed) {
    if (!placed.rule.keep || !placed.has("path")) return;
    if (count_generation_marks(placed.rule.pattern) == 1) return;
    problem(placed.line_of("keep"),
            "keep: counts generations, but the path has no {n} that numbers them, as in "
            "step-{n}.h5");
  }

  // These properties are decided when the file is opened, for the whole file. Whether a block may
  // have a bucket is decided block by block.
  void check_part(const PlacedRule& placed) {
    if (!placed.rule.speaks_of_part()) return;
    const bool is_bypass = placed.rule.mode == BufferingMode::kBypass;
    for (const char* field :
         {"mode", "trigger", "durability", "policy", "prefetch", "keep", "reserve", "array"}) {
      if (!placed.has(field) || (is_bypass && std::string_view(field) == "mode")) continue;
      problem(placed.line_of(field),
              fmt::format("{}: holds for a whole file, but the rule speaks of a part of it; give "
                          "it a rule without offset",
                          field));
    }
  }

  // A hint is known by its path alone.
  void check_array(const PlacedRule& placed) {
    if (!placed.has("array")) return;
    for (const char* field : {"size", "access"}) {
      if (!placed.has(field)) continue;
      problem(placed.line_of("array"),
              fmt::format("array: holds for all files of the path, but the rule has {}; give it a "
                          "rule without",
                          field));
    }
    if (count_generation_marks(placed.rule.pattern) != 0)
      problem(placed.line_of("array"), "array: the path has {n}; write * in its place");
  }

  void check_names() {
    std::map<std::string, const PlacedRule*> seen;
    for (const PlacedRule& placed : rules_) {
      if (placed.rule.name.empty()) continue;
      const auto [first, is_new] = seen.emplace(placed.rule.name, &placed);
      if (is_new) continue;
      problem(placed.line_of("name"),
              fmt::format("name: {} has this name too; choose another", named(*first->second)));
    }
  }

  void check_pairs() {
    for (std::size_t later = 1; later < rules_.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const bool comparable = rules_[earlier].has("path") && rules_[later].has("path");
        if (comparable && same_conditions(rules_[earlier].rule, rules_[later].rule)) {
          compare(rules_[earlier], rules_[later]);
        }
      }
    }
  }

  void compare(const PlacedRule& earlier, const PlacedRule& later) {
    for (unsigned index = 0; index < kRuleProperties; ++index) {
      const auto property = static_cast<RuleProperty>(index);
      const auto first = property_text(earlier.rule, property);
      const auto second = property_text(later.rule, property);
      if (!first || !second || *first == *second) continue;
      if (property == RuleProperty::kArray && dataset_of(earlier.rule) != dataset_of(later.rule))
        continue;
      const bool by_never = property == RuleProperty::kMode && later.has("never-buffer");
      const std::string field = by_never ? "never-buffer" : name_of(property);
      problem(later.line_of(field),
              fmt::format("{}: {} speaks of the same files and sets {} to {}, not {}; keep one",
                          field, named(earlier), name_of(property), *first, *second));
    }
  }

  const std::vector<PlacedRule>& rules_;
  std::vector<SchemaProblem> problems_;
};

// The bytes of one file that the rule pins: all that it allows where size or offset have an upper
// bound, else what the smallest file has.
std::uint64_t pinned_bytes(const FileRule& rule) {
  const std::uint64_t bound = std::min(rule.size_max, rule.offset_end);
  const std::uint64_t end = bound != FileRule::kUnlimited ? bound : rule.size_min;
  return end > rule.offset_begin ? end - rule.offset_begin : 0;
}

const TierCapacity* tier_named(std::span<const TierCapacity> tiers, const std::string& name) {
  const auto found = std::find_if(tiers.begin(), tiers.end(),
                                  [&name](const TierCapacity& tier) { return tier.name == name; });
  return found != tiers.end() ? &*found : nullptr;
}

std::string unknown_tier(const std::string& name, std::span<const TierCapacity> tiers) {
  std::vector<std::string_view> names;
  std::string list;
  for (const TierCapacity& tier : tiers) {
    names.push_back(tier.name);
    list += (list.empty() ? "" : ", ") + tier.name;
  }
  const std::string_view nearest = nearest_name(name, names);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
  return fmt::format("tier \"{}\" does not exist; the node has {}{}", name,
                     list.empty() ? "none" : list, hint);
}

// Returns: empty when a tier of this size can have so much reserved at best. The node knows how
// much of it stays for everybody and how much others have.
std::string reservation_problem(const Reservation& reservation,
                                std::span<const TierCapacity> tiers) {
  if (reservation.bytes == 0) return "";
  if (tiers.empty()) return "the node has no tier";
  const TierCapacity* tier =
      reservation.tier.empty() ? &tiers.front() : tier_named(tiers, reservation.tier);
  if (tier == nullptr) return unknown_tier(reservation.tier, tiers);
  if (reservation.bytes <= tier->capacity_bytes) return "";
  return fmt::format("tier {} has {}, less than the {} that are to be reserved", tier->name,
                     format_size_exact(tier->capacity_bytes), format_size_exact(reservation.bytes));
}

// Returns: empty when the pin can be kept.
std::string pin_problem(const FileRule& rule, std::span<const TierCapacity> tiers) {
  const std::uint64_t bytes = pinned_bytes(rule);
  const TierCapacity* tier = nullptr;
  if (rule.tier) {
    tier = tier_named(tiers, *rule.tier);
    if (tier == nullptr) return "";
  } else {
    const auto largest = std::max_element(tiers.begin(), tiers.end(),
                                          [](const TierCapacity& left, const TierCapacity& right) {
                                            return left.capacity_bytes < right.capacity_bytes;
                                          });
    if (largest == tiers.end()) return "pin: the node has no tier";
    tier = &*largest;
  }
  if (bytes <= tier->capacity_bytes) return "";
  return fmt::format(
      "pin: up to {} of one file do not fit into {} {} ({}); lower size max, give "
      "an offset range, or name a larger tier",
      format_size_exact(bytes), rule.tier ? "tier" : "the largest tier", tier->name,
      format_size_exact(tier->capacity_bytes));
}

}  // namespace

std::vector<SchemaProblem> find_conflicts(const std::vector<PlacedRule>& rules) {
  return ConflictFinder(rules).find();
}

std::vector<std::string> check_rules(std::span<const FileRule> rules,
                                     std::span<const TierCapacity> tiers) {
  std::vector<std::string> problems;
  for (const FileRule& rule : rules) {
    const auto problem = [&](const std::string& text) {
      const std::string place = rule.source.empty() ? rule_text(rule) : rule.source;
      problems.push_back(place + ": " + text);
    };
    if (rule.tier && tier_named(tiers, *rule.tier) == nullptr) {
      problem(unknown_tier(*rule.tier, tiers));
    }
    if (rule.policy) {
      const std::string what = policy_problem(*rule.policy);
      if (!what.empty()) problem("policy: " + what);
    }
    if (rule.reserve) {
      const std::string what = reservation_problem(*rule.reserve, tiers);
      if (!what.empty()) problem("reserve: " + what);
    }
    if (rule.pinned.value_or(false)) {
      const std::string what = pin_problem(rule, tiers);
      if (!what.empty()) problem(what);
    }
  }
  return problems;
}

}  // namespace cairn
