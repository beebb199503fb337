// SPDX-License-Identifier: Apache-2.0
//
// What one option is: its name, its type, its texts, and how its value enters and leaves a
// configuration.
//
// Thread safety: constant data and pure functions. Ownership: an option refers to literals only.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/configuration/draft.h"

namespace cairn::cli {

enum class OptionType : uint8_t {
  kName,           // letters, digits, "_", "-", "."
  kSize,           // bytes with a binary suffix
  kPercent,        // 0..100, a trailing % is allowed
  kCount,          // a whole number
  kMilliseconds,   // a duration; a bare number is milliseconds
  kChoice,         // one of `choices`
  kSwitch,         // on | off
  kDirectoryList,  // existing directories, ":" between them in the environment
  kPatternList,    // glob patterns, ":" between them in the environment
  kFile,           // an existing file; empty: none
  kPolicy,         // one of `choices`, or the path of a plugin (with a slash)
  kTierList,       // {name, directory, capacity} in YAML, DIR:SIZE elsewhere, "," between them
};

struct Option;

// One option as one layer (file, environment, command line) sets it.
struct Setting {
  const Option* option = nullptr;
  std::vector<SettingItem> items;  // exactly one unless the option is a list
  std::string source;  // "job.yaml:12", "environment CAIRN_RAM_CAPACITY", "command line"
};

// How the value of an option enters and leaves a configuration (option_access.h).
struct OptionAccess {
  // Replaces what weaker layers said. A mistake goes to the draft's problems.
  void (*set)(const Setting& setting, Draft& draft);
  // Returns: one text, any number for a list, none for a file that nobody named.
  std::vector<std::string> (*get)(const Option& option, const Configuration& configuration);
};

enum class FlagOffer : uint8_t {
  kByAll,  // by each command that may start a node
  kByUp,   // by those that name the node
  kByRun,  // by `cairn run`
};

struct OptionFlag {
  std::string_view name;   // "--ram"; empty: the option has none
  std::string_view value;  // the word for its value in help texts; empty: a switch that turns
                           // the default round
  std::string_view help;
  FlagOffer offer = FlagOffer::kByAll;
};

inline constexpr uint64_t kNoMaximum = std::numeric_limits<int64_t>::max();

struct Option {
  // Also the path in the YAML file: "ram.capacity" is key capacity of map ram.
  std::string_view name;
  OptionType type;
  std::string_view default_text;  // "auto" where the machine decides
  uint64_t value_min = 0;         // of numbers, in the option's own unit
  uint64_t value_max = kNoMaximum;
  std::span<const std::string_view> choices = {};  // of kChoice and kPolicy
  std::string_view unit = "";  // how values are written; empty: as all of the type (unit_of)
  OptionFlag flag = {};
  std::string_view description;
  std::string_view advice;               // cost, and when to change it
  std::string_view when_empty = "none";  // what `cairn config show` prints for no value
  // Each run on a running node takes a hot-changeable option anew; the others need a new node.
  bool hot_changeable = false;
  // Few users need it: shown after the others.
  bool advanced = false;
  OptionAccess access;
};

inline constexpr std::string_view kEnvironmentPrefix = "CAIRN_";

// "CAIRN_RAM_CAPACITY" of "ram.capacity".
std::string environment_of(const Option& option);

// How values are written, for the documentation.
std::string unit_of(const Option& option);

// True when a setting may hold several values.
bool is_list(OptionType type);

// The value as `cairn config show` prints it.
std::string value_text(const Option& option, const Configuration& configuration);

// The number that a kSize, kPercent, kCount or kMilliseconds text stands for.
// Returns: nothing on a mistake; `problem` names the mistake and the right form.
std::optional<uint64_t> parse_option_number(const Option& option, std::string_view text,
                                            std::string* problem);

}  // namespace cairn::cli
