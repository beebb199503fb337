// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/setting_flags.h"

#include <CLI/Option.hpp>
#include <string>
#include <string_view>

#include "cli/configuration/option_table.h"

namespace cairn::cli {
namespace {

const char* turned_value(const Option& option) {
  return option.default_text == "on" ? "off" : "on";
}

bool is_offered(const Option& option, FlagOffer command) {
  const FlagOffer offer = option.flag.offer;
  return !option.flag.name.empty() && (offer == FlagOffer::kByAll || offer == command);
}

void add_flag(CLI::App& app, CommandLineSettings& settings, const Option& option) {
  const std::string flag(option.flag.name);
  const std::string help(option.flag.help);
  std::vector<std::string>& values = settings.flags[std::string(option.name)];
  CLI::Option* added = nullptr;
  if (option.type == OptionType::kSwitch) {
    const char* turned = turned_value(option);
    added = app.add_flag_callback(flag, [&values, turned] { values = {turned}; }, help);
  } else {
    const std::string value(option.flag.value);
    added = is_list(option.type) ? add_list(app, flag.c_str(), values, help.c_str(), value.c_str())
                                 : add_one(app, flag.c_str(), values, help.c_str(), value.c_str());
  }
  if (option.advanced) added->group("Advanced");
}

}  // namespace

void add_setting_flags(CLI::App& app, CommandLineSettings& settings, FlagOffer command) {
  add_text(app, "--config", settings.config_file, "YAML file (docs/configuration.md)", "FILE");
  for (const Option& option : option_table()) {
    if (is_offered(option, command)) add_flag(app, settings, option);
  }
}

bool is_given(const Option& option, const std::vector<std::string>& values) {
  const bool is_empty_text = !is_list(option.type) && values.size() == 1 && values.front().empty();
  return !values.empty() && !is_empty_text;
}

std::string_view node_flag(const CommandLineSettings& settings) {
  for (const auto& [name, values] : settings.flags) {
    const Option& option = option_named(name);
    if (is_given(option, values) && !option.hot_changeable) return option.flag.name;
  }
  return "";
}

}  // namespace cairn::cli
