// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/config_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

#include "cli/configuration/configuration.h"
#include "cli/configuration/configuration_text.h"
#include "cli/configuration/option_table.h"
#include "cli/configuration/setting_flags.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// {name, value, source} of each option that a new node would get.
Json resolved_options(const CommandLineSettings& settings) {
  const Configuration configuration = resolve_configuration(settings);
  for (const std::string& warning : configuration.warnings) say("warning: " + warning);
  Json options = Json::array();
  for (const ResolvedOption& option : configuration.node.resolved) {
    options.push_back({{"name", option.name}, {"value", option.value}, {"source", option.source}});
  }
  return options;
}

// The options that most users set come first, then the advanced ones.
std::string options_text(const Json& options) {
  using Rows = std::vector<std::vector<std::string>>;
  Rows usual = {{"option", "value", "source"}};
  Rows advanced = {{"advanced option", "value", "source"}};
  for (const Json& option : options) {
    const std::string name = text_field(option, "name");
    const Option* known = find_option(name);
    (known != nullptr && known->advanced ? advanced : usual)
        .push_back({printable(name), printable(text_field(option, "value")),
                    printable(text_field(option, "source"))});
  }
  return format_table(usual, "lll") + "\n" + format_table(advanced, "lll");
}

int show_config(const Arguments& arguments) {
  CLI::App app("Prints every resolved value and where it came from.", "cairn config show");
  CommandLineSettings settings;
  std::string node;
  bool json = false;
  add_text(app, "--node", node, "Of a running node, instead of what a new one would get", "NAME");
  add_setting_flags(app, settings, FlagOffer::kByUp);
  app.add_flag("--json", json, "As JSON: a list of {name, value, source}");
  app.footer("Example:\n  cairn config show --config job.yaml --ram 8G");
  parse(app, arguments);
  const Json options =
      node.empty()
          ? resolved_options(settings)
          : member(ControlClient(select_node(node)).request({{"command", "config"}}), "options");
  print(json ? options.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
             : options_text(options));
  return kExitOk;
}

}  // namespace

int command_config(const Arguments& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments.front();
  if (verb == "show") return show_config(Arguments(arguments.begin() + 1, arguments.end()));
  if (verb == "docs" && arguments.size() == 1) {
    print(configuration_document());
    return kExitOk;
  }
  CLI::App app("Shows the configuration in force, or the reference of all options.",
               "cairn config");
  const char* usage = "Usage: cairn config show [OPTIONS]\n       cairn config docs";
  app.footer(
      "  show   every resolved value and where it came from\n"
      "  docs   the reference of all options, as docs/configuration.md\n\n"
      "Example:\n  cairn config show --config job.yaml");
  if (verb == "docs") parse(app, Arguments(arguments.begin() + 1, arguments.end()), usage);
  if (verb == "--help" || verb == "-h") parse(app, {"--help"}, usage);
  throw Failure(
      verb.empty() ? "config: show or docs?" : fmt::format("config: unknown word \"{}\"", verb),
      "`cairn config show` prints the values in force, `cairn config docs` the reference");
}

}  // namespace cairn::cli
