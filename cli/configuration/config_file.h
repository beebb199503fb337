// SPDX-License-Identifier: Apache-2.0
//
// Reads a YAML configuration file into settings that still know their line; nothing is interpreted
// yet.
//
// The keys come from the option table. All mistakes of form are collected: syntax, unknown keys
// (with the nearest known one), keys given twice, a list where a value belongs.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>
#include <vector>

#include "base/option_table.h"

namespace cairn::cli {

// One value as it was written, with the place for messages and for `cairn config show`.
struct SettingItem {
  std::string text;  // a scalar, or DIR:SIZE of a tier
  std::string name;  // of a tier, empty where it was not named
  std::string source;
};

// One option as one layer (file, environment, command line) sets it.
struct Setting {
  OptionId id{};
  std::vector<SettingItem> items;  // exactly one unless the option is a list
  std::string source;  // "job.yaml:12", "environment CAIRN_RAM_CAPACITY", "command line"
};

struct ConfigFile {
  std::vector<Setting> settings;
  // The rules of a node's resolved configuration as a YAML schema (rules_yaml()); the schema file
  // that they come from is not read again.
  std::string resolved_rules;
  bool has_resolved_rules = false;
  std::vector<std::string> problems;  // each "FILE:LINE: what is wrong"
};

// Errors: an unreadable file is one problem.
ConfigFile load_config_file(const std::string& path);

// As load_config_file, for text that was read already; `path` is used in messages.
ConfigFile parse_config_text(const std::string& text, const std::string& path);

}  // namespace cairn::cli
