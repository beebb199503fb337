// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/handling.h"
#include "base/nearest_name.h"
#include "base/size_text.h"
#include "policy/arrays/rule_hint.h"
#include "policy/rules/rule_match.h"
#include "policy/rules/rule_property.h"

namespace cairn {
namespace {

constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kTierNameBytesMax = 31;
constexpr std::size_t kPolicyBytesMax = 1023;
constexpr std::uint64_t kPriorityMax = 7;
constexpr std::uint64_t kKeepMax = 999'999;

using Words = std::vector<std::string_view>;

const char* word_for(EntryKind kind) {
  switch (kind) {
    case EntryKind::kElement:
      return "element";
    case EntryKind::kAttribute:
      return "attribute";
    case EntryKind::kKey:
      return "key";
  }
  return "entry";
}

std::string listed(const Words& words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? " or " : ", ";
    text += words[index];
  }
  return text;
}

std::string did_you_mean(std::string_view word, const Words& known) {
  const std::string_view nearest = nearest_name(word, known);
  return nearest.empty() ? "" : fmt::format(" Did you mean \"{}\"?", nearest);
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char byte) { return byte < 0x20 || byte == 0x7F; });
}

class Reader {
 public:
  explicit Reader(bool resolved) : resolved_(resolved) {}

  ReadRules read(const SchemaEntry& root) {
    if (root.name != "rules") {
      problem(root,
              fmt::format("\"{}\" is not what a schema begins with; write \"rules\"", root.name));
      return std::move(result_);
    }
    expect_no_text(root);
    for (const SchemaEntry& entry : root.entries) {
      if (entry.name != "rule") {
        unknown(entry, "rules", {"rule"});
      } else if (result_.rules.size() == kSchemaRulesMax) {
        problem(entry,
                fmt::format("more than {} rules; say it with fewer patterns", kSchemaRulesMax));
        break;
      } else {
        read_rule(entry);
      }
    }
    return std::move(result_);
  }

 private:
  using Field = void (Reader::*)(const SchemaEntry& entry);

  void problem(const SchemaEntry& entry, std::string text) {
    result_.problems.push_back({entry.line, std::move(text)});
  }

  void unknown(const SchemaEntry& entry, const char* group, const Words& known) {
    has_unknown_ = true;
    const std::string_view nearest = nearest_name(entry.name, known);
    problem(entry,
            fmt::format("unknown {} \"{}\" in {}; {}", word_for(entry.kind), entry.name, group,
                        nearest.empty() ? "there is " + listed(known)
                                        : fmt::format("did you mean \"{}\"?", nearest)));
  }

  void expect_no_text(const SchemaEntry& entry) {
    if (entry.text.empty()) return;
    problem(entry, fmt::format("\"{}\" takes no text; its values are named", entry.name));
  }

  // The text of an entry that is one value. Returns: null after a problem.
  const std::string* value_of(const SchemaEntry& entry) {
    if (!entry.entries.empty()) {
      problem(entry, fmt::format("\"{}\" takes one value and has nothing inside", entry.name));
      return nullptr;
    }
    if (entry.text.empty()) {
      problem(entry, fmt::format("\"{}\" has no value; give it one or leave it out", entry.name));
      return nullptr;
    }
    if (has_control_character(entry.text)) {
      problem(entry, fmt::format("\"{}\" contains a line break or another control character; "
                                 "write it on one line",
                                 entry.name));
      return nullptr;
    }
    return &entry.text;
  }

  void wrong_value(const SchemaEntry& entry, const std::string& expected) {
    problem(entry, fmt::format("{}: \"{}\" is not {}", entry.name, entry.text, expected));
  }

  void given(const SchemaEntry& entry) { placed_.lines[entry.name] = entry.line; }

  void read_rule(const SchemaEntry& entry) {
    placed_ = PlacedRule{};
    placed_.line = entry.line;
    has_unknown_ = false;
    const std::size_t problems_before = result_.problems.size();
    expect_no_text(entry);
    read_fields(entry, "rule",
                {{"name", &Reader::read_name},
                 {"path", &Reader::read_path},
                 {"size", &Reader::read_size},
                 {"offset", &Reader::read_offset},
                 {"access", &Reader::read_access},
                 {"place", &Reader::read_place},
                 {"never-buffer", &Reader::read_never_buffer},
                 {"mode", &Reader::read_mode},
                 {"trigger", &Reader::read_trigger},
                 {"durability", &Reader::read_durability},
                 {"policy", &Reader::read_policy},
                 {"priority", &Reader::read_priority},
                 {"prefetch", &Reader::read_prefetch},
                 {"keep", &Reader::read_keep},
                 {"reserve", &Reader::read_reserve},
                 {"array", &Reader::read_array}});
    const bool has_path = std::any_of(entry.entries.begin(), entry.entries.end(),
                                      [](const SchemaEntry& part) { return part.name == "path"; });
    // A misspelt "path" was reported already; that it is missing as well would be noise.
    if (!has_path && !has_unknown_) {
      problem(entry, "a rule needs a path: a pattern such as *.h5, or * for every file");
    }
    CAIRN_CHECK(result_.problems.size() >= problems_before);
    placed_.has_mistake = result_.problems.size() > problems_before;
    if (placed_.has("never-buffer")) placed_.rule.mode = BufferingMode::kBypass;
    result_.rules.push_back(std::move(placed_));
  }

  void read_fields(const SchemaEntry& group, const char* name,
                   const std::vector<std::pair<std::string_view, Field>>& fields) {
    Words known;
    for (const auto& field : fields) known.push_back(field.first);
    std::set<std::string_view> seen;
    for (const SchemaEntry& entry : group.entries) {
      if (resolved_ && entry.name == "source" && group.name == "rule") {
        placed_.rule.source = entry.text;
        continue;
      }
      const auto field =
          std::find_if(fields.begin(), fields.end(),
                       [&entry](const auto& candidate) { return candidate.first == entry.name; });
      if (field == fields.end()) {
        unknown(entry, name, known);
      } else if (entry.is_list) {
        problem(entry, fmt::format("\"{}\" does not take a list", entry.name));
      } else if (!seen.insert(entry.name).second) {
        problem(entry, fmt::format("\"{}\" is given twice in {}; keep one", entry.name, name));
      } else {
        (this->*field->second)(entry);
      }
    }
  }

  void read_name(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    if (text->size() > kNameBytesMax) {
      problem(entry, fmt::format("name: longer than {} bytes; shorten it", kNameBytesMax));
      return;
    }
    placed_.rule.name = *text;
    given(entry);
  }

  void read_path(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    if (text->size() > FileRule::kPatternBytesMax) {
      problem(entry, fmt::format("path: longer than {} bytes; shorten it with *",
                                 FileRule::kPatternBytesMax));
    } else if (count_generation_marks(*text) > 1) {
      problem(entry,
              "path: more than one {n}; keep the one that counts generations and write * "
              "for the others");
    } else {
      placed_.rule.pattern = *text;
      given(entry);
    }
  }

  std::optional<std::uint64_t> read_bytes(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return std::nullopt;
    const auto bytes = parse_size(*text);
    if (!bytes) wrong_value(entry, "a size such as 4096, 64M or 1G");
    if (bytes) given(entry);
    return bytes;
  }
  void read_first_bytes(const SchemaEntry& entry) {
    if (const auto bytes = read_bytes(entry)) *range_first_ = *bytes;
  }
  void read_last_bytes(const SchemaEntry& entry) {
    if (const auto bytes = read_bytes(entry)) *range_last_ = *bytes;
  }

  // Returns: false after a problem.
  bool is_group(const SchemaEntry& entry, const char* example) {
    expect_no_text(entry);
    if (!entry.entries.empty()) return true;
    if (entry.text.empty()) {
      problem(entry,
              fmt::format("\"{}\" says nothing; give it {}, or leave it out", entry.name, example));
    }
    return false;
  }

  void read_size(const SchemaEntry& entry) {
    if (!is_group(entry, "min or max")) return;
    range_first_ = &placed_.rule.size_min;
    range_last_ = &placed_.rule.size_max;
    read_fields(entry, "size",
                {{"min", &Reader::read_first_bytes}, {"max", &Reader::read_last_bytes}});
    given(entry);
  }

  void read_offset(const SchemaEntry& entry) {
    if (!is_group(entry, "begin or end")) return;
    range_first_ = &placed_.rule.offset_begin;
    range_last_ = &placed_.rule.offset_end;
    read_fields(entry, "offset",
                {{"begin", &Reader::read_first_bytes}, {"end", &Reader::read_last_bytes}});
    given(entry);
  }

  void read_place(const SchemaEntry& entry) {
    if (!is_group(entry, "a tier or pin")) return;
    read_fields(entry, "place", {{"tier", &Reader::read_tier}, {"pin", &Reader::read_pin}});
  }

  void read_tier(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    const bool good = std::all_of(text->begin(), text->end(), [](unsigned char letter) {
      return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
    });
    if (!good || text->size() > kTierNameBytesMax) {
      wrong_value(entry, fmt::format("a tier's name: at most {} letters, digits, \"_\" and \"-\"",
                                     kTierNameBytesMax));
      return;
    }
    placed_.rule.tier = *text;
    given(entry);
  }

  std::optional<bool> read_switch(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return std::nullopt;
    if (*text != "true" && *text != "false") {
      wrong_value(entry, "true or false");
      return std::nullopt;
    }
    given(entry);
    return *text == "true";
  }

  void read_pin(const SchemaEntry& entry) {
    if (const auto value = read_switch(entry)) placed_.rule.pinned = *value;
  }

  // "false" says what holds without it.
  void read_never_buffer(const SchemaEntry& entry) {
    if (const auto value = read_switch(entry); value && !*value) placed_.lines.erase(entry.name);
  }

  template <typename Value>
  void read_choice(const SchemaEntry& entry, std::optional<Value> (*named)(std::string_view),
                   const Words& choices, std::optional<Value>* into) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    *into = named(*text);
    if (*into) {
      given(entry);
    } else {
      wrong_value(entry, fmt::format("{}.{}", listed(choices), did_you_mean(*text, choices)));
    }
  }

  template <typename Value, unsigned Count>
  static Words names_of_all() {
    Words names;
    for (unsigned index = 0; index < Count; ++index) {
      names.push_back(name_of(static_cast<Value>(index)));
    }
    return names;
  }

  void read_access(const SchemaEntry& entry) {
    std::optional<RuleAccess> access;
    read_choice(entry, rule_access_named, names_of_all<RuleAccess, 4>(), &access);
    if (access) placed_.rule.access = *access;
  }
  void read_mode(const SchemaEntry& entry) {
    read_choice(entry, buffering_mode_named, names_of_all<BufferingMode, kBufferingModes>(),
                &placed_.rule.mode);
  }
  void read_trigger(const SchemaEntry& entry) {
    read_choice(entry, flush_trigger_named, names_of_all<FlushTrigger, kFlushTriggers>(),
                &placed_.rule.trigger);
  }
  void read_durability(const SchemaEntry& entry) {
    read_choice(entry, durability_named, names_of_all<Durability, kDurabilities>(),
                &placed_.rule.durability);
  }
  void read_prefetch(const SchemaEntry& entry) {
    read_choice(entry, prefetch_hint_named, names_of_all<PrefetchHint, 5>(),
                &placed_.rule.prefetch);
  }

  void read_policy(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    const std::string what = policy_problem(*text);
    if (!what.empty()) {
      problem(entry, "policy: " + what);
      return;
    }
    placed_.rule.policy = *text;
    given(entry);
  }

  std::optional<unsigned> read_number(const SchemaEntry& entry, std::uint64_t least,
                                      std::uint64_t most) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return std::nullopt;
    const auto number = parse_count(*text);
    if (!number || *number < least || *number > most) {
      wrong_value(entry, fmt::format("a whole number from {} to {}", least, most));
      return std::nullopt;
    }
    given(entry);
    return static_cast<unsigned>(*number);
  }
  void read_priority(const SchemaEntry& entry) {
    placed_.rule.priority = read_number(entry, 0, kPriorityMax);
  }
  void read_keep(const SchemaEntry& entry) { placed_.rule.keep = read_number(entry, 1, kKeepMax); }

  void read_reserve(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    placed_.rule.reserve = parse_reservation(*text);
    if (placed_.rule.reserve) {
      given(entry);
    } else {
      wrong_value(entry, "a size such as 2G, or a tier's name and a size such as nvme:10G");
    }
  }

  // The path may stand below it, so the hint is checked for any.
  void read_array(const SchemaEntry& entry) {
    const std::string* text = value_of(entry);
    if (text == nullptr) return;
    FileRule any;
    any.pattern = "*";
    any.array = *text;
    const auto hint = arrays::hint_of(any);
    if (!hint) {
      wrong_value(entry, "a hint: " + hint.status().message());
    } else if (hint->file != any.pattern) {  // some of the text was taken for the file
      wrong_value(entry, "a dataset, from \"/\" on and without \":/\", and its chunks");
    } else {
      placed_.rule.array = *text;
      given(entry);
    }
  }

  const bool resolved_;
  PlacedRule placed_;         // the rule being read
  bool has_unknown_ = false;  // an entry of it
  std::uint64_t* range_first_ = nullptr;
  std::uint64_t* range_last_ = nullptr;
  ReadRules result_;
};

}  // namespace

std::string policy_problem(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (name.front() != '/') return fmt::format("\"{}\" is not an absolute path", name);
    if (name.size() <= kPolicyBytesMax) return "";
    return fmt::format("the path of the plugin is longer than {} bytes", kPolicyBytesMax);
  }
  const Words known(kPlacementPolicyNames.begin(), kPlacementPolicyNames.end());
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  return fmt::format("\"{}\" is not {}, or the absolute path of a plugin.{}", name, listed(known),
                     did_you_mean(name, known));
}

ReadRules read_rules(const SchemaEntry& root, bool resolved) { return Reader(resolved).read(root); }

}  // namespace cairn
