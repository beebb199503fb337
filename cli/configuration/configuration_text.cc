// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/configuration_text.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "base/size_text.h"
#include "cli/configuration/option_table.h"
#include "policy/rules/rule_property.h"

namespace cairn::cli {
namespace {

// Double-quoted YAML, which can hold any bytes of a path.
std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += letter;
    }
  }
  return result + '"';
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ", " : "") + yaml_quoted(item);
  return text + "]";
}

std::string tiers_yaml(const NodeConfig& node) {
  std::string text = "[";
  for (const FileTierConfig& tier : node.tiers) {
    text += fmt::format("{}{{name: {}, directory: {}, capacity: {}{}}}",
                        text.size() > 1 ? ", " : "", yaml_quoted(tier.name),
                        yaml_quoted(tier.directory), format_size_exact(tier.capacity_bytes),
                        tier.is_durable ? ", durable: true" : "");
  }
  return text + "]";
}

std::string yaml_value(const Option& option, const Configuration& configuration) {
  const std::vector<std::string> values = option.access.get(option, configuration);
  switch (option.type) {
    case OptionType::kTierList:
      return tiers_yaml(configuration.node);
    case OptionType::kDirectoryList:
    case OptionType::kPatternList:
      return list_text(values);
    case OptionType::kName:
    case OptionType::kPolicy:
    case OptionType::kFile:
      return yaml_quoted(values.empty() ? "" : values.front());
    default:
      return values.front();
  }
}

// The rules as a text inside the text, so that a schema's own keys need no place among the options.
std::string resolved_rules_yaml(const NodeConfig& node) {
  if (node.schema_file.empty() && node.rules.empty()) return "";
  std::string text = "resolved_rules: |\n";
  std::istringstream lines(rules_yaml(node.rules));
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

std::string flag_text(const Option& option) {
  const OptionFlag& flag = option.flag;
  std::string text = flag.value.empty() ? fmt::format("`{}`", flag.name)
                                        : fmt::format("`{} {}`", flag.name, flag.value);
  if (is_list(option.type)) text += ", repeatable";
  if (option.type == OptionType::kTierList) text += "; `none` for no file tier";
  if (flag.offer == FlagOffer::kByUp) text += " of `cairn up`";
  if (flag.offer == FlagOffer::kByRun) text += " of `cairn run`";
  return text;
}

std::string default_text(const Option& option) {
  return option.default_text.empty() ? "empty" : fmt::format("`{}`", option.default_text);
}

constexpr std::string_view kDocumentHead =
    R"(<!-- Made by `cairn config docs` from cli/configuration/option_table.cc. -->
# Configuration

Cairn needs no configuration: `cairn run -- PROGRAM` looks at the machine and chooses. A user who
wants something else says so, weakest first,

1. in a YAML file: `--config FILE`, or the environment variable `CAIRN_CONFIG`;
2. in the environment, one variable for each option;
3. on the command line.

A later place replaces an option of an earlier one as a whole. `cairn config show` prints every
resolved value and where it came from; with `--node NAME` it prints those of a running node. Cairn
reports all mistakes at once, each with its file and line, and starts nothing.

Sizes take the suffixes K, M, G, T (binary: `1K` is 1024 bytes, `KiB` and `KB` mean the same).
Durations without a suffix are milliseconds. On a running node (`cairn run --node NAME`) each run
brings its own values of the options marked "each run"; all others belong to the node and are fixed
when it starts.

```yaml
# job.yaml: every key may be left out
ram:
  capacity: 32G
tiers:
  - {name: nvme, directory: /local/scratch, capacity: 400G}
flush:
  streams: 8
buffer:
  directories: [/pfs/project/run7]
  exclude: ["*.log"]
```

## Options

)";

constexpr std::string_view kAdvancedHead = R"(
## Advanced options

Few users need these: the defaults suit most machines and programs.

)";

std::string anchor_of(const Option& option) {
  std::string anchor(option.name);
  std::erase(anchor, '.');
  return anchor;
}

std::string section(const Option& option) {
  std::string text =
      fmt::format("\n### {}\n\n{}\n\n{}\n\n", option.name, option.description, option.advice);
  text += fmt::format("- default: {}\n- value: {}\n", default_text(option), unit_of(option));
  const bool has_range = option.type == OptionType::kPercent || option.type == OptionType::kCount ||
                         option.type == OptionType::kMilliseconds;
  if (has_range) text += fmt::format("- allowed: {} to {}\n", option.value_min, option.value_max);
  text += fmt::format("- environment: `{}`\n", environment_of(option));
  if (!option.flag.name.empty()) text += fmt::format("- command line: {}\n", flag_text(option));
  return text;
}

// A table of the advanced options or of the others, and a section for each.
std::string part(bool advanced) {
  std::string table = "| option | default | belongs to |\n|---|---|---|\n";
  std::string sections;
  for (const Option& option : option_table()) {
    if (option.advanced != advanced) continue;
    table += fmt::format("| [{}](#{}) | {} | {} |\n", option.name, anchor_of(option),
                         default_text(option), option.hot_changeable ? "each run" : "the node");
    sections += section(option);
  }
  return table + sections;
}

}  // namespace

std::string configuration_yaml(const Configuration& configuration) {
  std::string text = fmt::format(
      "# The resolved configuration of node {}, written by cairn {} when it was started.\n",
      configuration.node.name, CAIRN_VERSION);
  std::string provenance = "resolved_from:\n";
  std::string group;
  for (const ResolvedOption& resolved : configuration.node.resolved) {
    const Option& option = option_named(resolved.name);
    const size_t dot = option.name.find('.');
    const std::string this_group(dot == std::string_view::npos ? "" : option.name.substr(0, dot));
    if (!this_group.empty() && this_group != group) text += this_group + ":\n";
    group = this_group;
    const std::string key(dot == std::string_view::npos ? option.name
                                                        : option.name.substr(dot + 1));
    text += fmt::format("{}{}: {}\n", group.empty() ? "" : "  ", key,
                        yaml_value(option, configuration));
    provenance += fmt::format("  {}: {}\n", option.name, yaml_quoted(resolved.source));
  }
  return text + resolved_rules_yaml(configuration.node) + provenance;
}

std::string configuration_document() {
  return std::string(kDocumentHead) + part(false) + std::string(kAdvancedHead) + part(true);
}

}  // namespace cairn::cli
