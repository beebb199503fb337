// SPDX-License-Identifier: Apache-2.0
//
// The layers that set options: the configuration file, the environment, the command line.
//
// Thread safety: pure reads of the file and the environment. Ownership: results are values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/configuration/option.h"
#include "cli/configuration/settings.h"

namespace cairn::cli {

struct SettingLayers {
  std::vector<Setting> settings;  // the weakest layer first
  // The rules that the resolved configuration of a node brings along (config_file.h); none where a
  // stronger layer names another schema.
  std::optional<std::string> resolved_rules;
  std::vector<std::string> problems;
};

SettingLayers read_layers(const CommandLineSettings& command_line);

}  // namespace cairn::cli
