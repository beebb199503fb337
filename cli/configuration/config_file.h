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

#include "cli/configuration/option.h"

namespace cairn::cli {

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
