// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/arguments.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string_view>

#include "base/nearest_name.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

std::string nearest_option(const CLI::App& app, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(nearest_name(given.substr(0, given.find('=')), views));
}

// What CLI11 objects to, said our way.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error,
                             const Arguments& arguments) {
  std::string remedy = fmt::format("`{} --help` lists what there is", app.get_name());
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    for (const std::string& argument : arguments) {
      if (argument.size() < 2 || argument[0] != '-') continue;
      if (app.get_option_no_throw(argument.substr(0, argument.find('='))) != nullptr) continue;
      const std::string nearest = nearest_option(app, argument);
      const std::string hint = nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest);
      throw Failure(fmt::format("unknown option {}", argument), hint + remedy);
    }
  }
  throw Failure(error.what(), remedy);
}

// The help as CLI11 formats it, with another usage line where its own would not say enough.
std::string help_text(const CLI::App& app, const char* usage) {
  std::string text = app.help();
  const size_t start = text.find("Usage: ");
  if (*usage == '\0' || start == std::string::npos) return text;
  return text.replace(start, text.find('\n', start) - start, usage);
}

// The head of the arguments that belongs to Cairn; what follows is the program and its own
// arguments.
size_t program_start(const CLI::App& app, const Arguments& arguments) {
  size_t index = 0;
  for (; index < arguments.size(); ++index) {
    const std::string& argument = arguments[index];
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-') break;
    const CLI::Option* option = app.get_option_no_throw(argument);
    const bool takes_value = option != nullptr && option->get_items_expected_min() > 0;
    if (takes_value) ++index;
  }
  return std::min(index, arguments.size());
}

}  // namespace

void parse(CLI::App& app, const Arguments& arguments, const char* usage) {
  try {
    Arguments reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print(help_text(app, usage));
    throw HelpShown();
  } catch (const CLI::ParseError& error) {
    fail_usage(app, error, arguments);
  }
}

VerbWords split_verb(const Arguments& arguments) {
  if (arguments.empty()) return {};
  return {arguments.front(), Arguments(arguments.begin() + 1, arguments.end())};
}

Arguments parse_before_program(CLI::App& app, const Arguments& arguments, const char* usage) {
  const size_t split = program_start(app, arguments);
  parse(app, Arguments(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(split)),
        usage);
  const size_t skip = split < arguments.size() && arguments[split] == "--" ? 1 : 0;
  return {arguments.begin() + static_cast<ptrdiff_t>(split + skip), arguments.end()};
}

CLI::Option* add_list(CLI::App& app, const char* names, std::vector<std::string>& values,
                      const char* help, const char* type) {
  return app.add_option(names, values, help)
      ->type_name(type)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_text(CLI::App& app, const char* names, std::string& value, const char* help,
                      const char* type) {
  return app.add_option(names, value, help)->type_name(type);
}

CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](const std::string& text) {
    double value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value);
    if (is_number && value >= least && value <= most) return std::string();
    return fmt::format("Value {} not in range {} to {}", printable(text), least, most);
  };
  return CLI::Validator(check, fmt::format("in [{} - {}]", least, most));
}

CLI::Option* add_one(CLI::App& app, const char* names, std::vector<std::string>& values,
                     const char* help, const char* type) {
  return app.add_option(names, values, help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

}  // namespace cairn::cli
