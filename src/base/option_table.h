// SPDX-License-Identifier: Apache-2.0
//
// The one table of all options: it yields the configuration file's keys, the environment variables,
// the command-line flags, `cairn config show` and docs/configuration.md. A default or a description
// is written here and nowhere else.
//
// Thread safety: constant data and pure functions. Ownership: the table refers to string literals
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

enum class OptionId : uint8_t {
  kNodeName,
  kRamCapacity,
  kRamHugePages,
  kTiers,
  kFlushDelay,
  kFlushStreams,
  kFlushDirtyHigh,
  kFlushRetry,
  kFlushTrigger,
  kFlushAmount,
  kEvictLow,
  kEvictHigh,
  kBufferDirectories,
  kBufferExclude,
  kBufferMode,
  kBufferScratch,
  kBufferSwap,
  kPlacementPolicy,
  kProfileIdle,
  kReplacementExpert,
  kBalanceReads,
  kReplacementAdmission,
  kPrefetchBudget,
  kPrefetchOrders,
  kPrefetchRemember,
  kPrefetchByHeat,
  kPrefetchPlugin,
  kEventsKeep,
  kSchema,
  kClientsMax,
  kObjectsMax,
  kReport,
};

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

struct OptionDescription {
  OptionId id;
  std::string_view
      name;  // also the path in the YAML file: "ram.capacity" is key capacity of map ram
  std::string_view environment;
  std::string_view flag;  // empty: no flag
  OptionType type;
  std::string_view default_text;  // "auto" where the default is found by looking at the machine
  uint64_t value_min;             // for numbers, in the option's own unit
  uint64_t value_max;
  std::string_view choices;  // "a|b|c" for kChoice and kPolicy, else empty
  std::string_view unit;     // how values are written
  std::string_view description;
  std::string_view advice;  // cost, and when to turn it
  // Hot-changeable options are taken anew by each run on a running node; the others need a new
  // node.
  bool hot_changeable;
};

std::span<const OptionDescription> option_table();

const OptionDescription& option_description(OptionId id);

// Returns: null when no option has this name ("ram.capacity").
const OptionDescription* find_option(std::string_view name);

// The words of `choices`.
std::vector<std::string_view> option_choices(const OptionDescription& option);

// The number that a kSize, kPercent, kCount or kMilliseconds text stands for.
// Returns: nothing on a mistake, and says in `problem` what is wrong and what would be right.
std::optional<uint64_t> parse_option_number(const OptionDescription& option, std::string_view text,
                                            std::string* problem);

}  // namespace cairn
