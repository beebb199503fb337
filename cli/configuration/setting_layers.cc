// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/setting_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/configuration/config_file.h"
#include "cli/configuration/option_table.h"
#include "cli/configuration/setting_flags.h"

extern char** environ;

namespace cairn::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

void read_file(const CommandLineSettings& command_line, SettingLayers* layers) {
  std::string path = command_line.config_file;
  if (path.empty() && !command_line.ignore_environment) {
    const char* from_environment = std::getenv("CAIRN_CONFIG");
    if (from_environment != nullptr) path = from_environment;
  }
  if (path.empty()) return;
  ConfigFile file = load_config_file(path);
  layers->problems = std::move(file.problems);
  layers->settings = std::move(file.settings);
  if (file.has_resolved_rules) layers->resolved_rules = std::move(file.resolved_rules);
}

// Most environments have no variable of ours, and fifty names need not be made to see that.
bool has_variables() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, kEnvironmentPrefix.size()) == kEnvironmentPrefix)
      return true;
  }
  return false;
}

void read_environment(SettingLayers* layers) {
  if (!has_variables()) return;
  for (const Option& option : option_table()) {
    const std::string variable = environment_of(option);
    const char* text = std::getenv(variable.c_str());
    if (text == nullptr) continue;
    const std::string source = "environment " + variable;
    Setting setting{&option, {}, source};
    std::vector<std::string> items = {text};
    if (is_list(option.type)) items = split(text, option.type == OptionType::kTierList ? ',' : ':');
    for (std::string& item : items) setting.items.push_back({std::move(item), "", source});
    layers->settings.push_back(std::move(setting));
  }
}

void read_flags(const CommandLineSettings& command_line, SettingLayers* layers) {
  for (const Option& option : option_table()) {
    const auto given = command_line.flags.find(option.name);
    if (given == command_line.flags.end() || !is_given(option, given->second)) continue;
    Setting setting{&option, {}, "command line"};
    for (const std::string& value : given->second)
      setting.items.push_back({value, "", fmt::format("{} {}", option.flag.name, value)});
    layers->settings.push_back(std::move(setting));
  }
}

}  // namespace

SettingLayers read_layers(const CommandLineSettings& command_line) {
  SettingLayers layers;
  read_file(command_line, &layers);
  const auto of_file = static_cast<ptrdiff_t>(layers.settings.size());
  if (!command_line.ignore_environment) read_environment(&layers);
  read_flags(command_line, &layers);
  if (std::any_of(layers.settings.begin() + of_file, layers.settings.end(),
                  [](const Setting& setting) { return setting.option->name == "schema"; })) {
    layers.resolved_rules.reset();
  }
  return layers;
}

}  // namespace cairn::cli
