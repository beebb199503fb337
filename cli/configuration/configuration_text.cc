// SPDX-License-Identifier: Apache-2.0
//
// The two texts made of a configuration: the resolved YAML file of a node, and the reference
// document.
#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "base/option_table.h"
#include "base/size_text.h"
#include "cli/configuration/configuration.h"
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
    text += fmt::format("{}{{name: {}, directory: {}, capacity: {}}}", text.size() > 1 ? ", " : "",
                        yaml_quoted(tier.name), yaml_quoted(tier.directory),
                        format_size_exact(tier.capacity_bytes));
  }
  return text + "]";
}

std::string yaml_value(const NodeConfig& node, const OptionDescription& option,
                       const std::string& resolved_value) {
  switch (option.id) {
    case OptionId::kTiers:
      return tiers_yaml(node);
    case OptionId::kBufferDirectories:
      return list_text(node.buffer_directories);
    case OptionId::kBufferExclude:
      return list_text(node.buffer_exclude);
    case OptionId::kBufferScratch:
      return list_text(node.scratch_directories);
    default:
      break;
  }
  if (option.id == OptionId::kSchema) return yaml_quoted(node.schema_file);
  if (option.id == OptionId::kPrefetchOrders) return yaml_quoted(node.orders_file);
  if (option.id == OptionId::kPrefetchPlugin) return yaml_quoted(node.predictor_file);
  if (option.id == OptionId::kPrefetchRemember) return yaml_quoted(resolved_value);
  const bool is_text = option.type == OptionType::kName || option.type == OptionType::kPolicy;
  return is_text ? yaml_quoted(resolved_value) : resolved_value;
}

// The rules as a text inside the text, so that a schema's own keys need no place among the options.
std::string resolved_rules_yaml(const NodeConfig& node) {
  if (node.schema_file.empty() && node.rules.empty()) return "";
  std::string text = "resolved_rules: |\n";
  std::istringstream lines(rules_yaml(node.rules));
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

std::string flag_text(const OptionDescription& option) {
  switch (option.type) {
    case OptionType::kSwitch:
      return fmt::format("`{}`", option.flag);
    case OptionType::kDirectoryList:
      return fmt::format("`{} DIR`, repeatable", option.flag);
    case OptionType::kPatternList:
      return fmt::format("`{} GLOB`, repeatable", option.flag);
    case OptionType::kTierList:
      return fmt::format("`{} DIR:SIZE`, repeatable; `none` for no file tier", option.flag);
    case OptionType::kName:
      return fmt::format("`{} NAME` of `cairn up`", option.flag);
    case OptionType::kFile:
      return fmt::format("`{} FILE`", option.flag);
    default:
      return fmt::format("`{} VALUE`", option.flag);
  }
}

std::string default_text(const OptionDescription& option) {
  return option.default_text.empty() ? "empty" : fmt::format("`{}`", option.default_text);
}

constexpr std::string_view kDocumentHead =
    R"(<!-- Made by `cairn config docs` from src/base/option_table.cc. -->
# Configuration

Cairn needs no configuration: `cairn run -- PROGRAM` looks at the machine and chooses. What should
be otherwise can be said, weakest first,

1. in a YAML file: `--config FILE`, or the environment variable `CAIRN_CONFIG`;
2. in the environment, one variable for each option;
3. on the command line.

A later place replaces an option of an earlier one as a whole. `cairn config show` prints every
resolved value and where it came from; with `--node NAME` it prints those of a running node. All
mistakes are reported at once, each with its file and line, and nothing is started.

Sizes take the suffixes K, M, G, T (binary: `1K` is 1024 bytes, `KiB` and `KB` mean the same).
Durations without a suffix are milliseconds. On a running node (`cairn run --node NAME`) the
options marked "each run" are taken from the run; all others belong to the node and are fixed when
it starts.

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

| option | default | taken by |
|---|---|---|
)";

}  // namespace

std::string configuration_yaml(const NodeConfig& node) {
  std::string text = fmt::format(
      "# The resolved configuration of node {}, written by cairn {} when it was started.\n",
      node.name, CAIRN_VERSION);
  std::string provenance = "resolved_from:\n";
  std::string group;
  for (const ResolvedOption& resolved : node.resolved) {
    const OptionDescription& option = *find_option(resolved.name);
    const size_t dot = option.name.find('.');
    const std::string this_group(dot == std::string_view::npos ? "" : option.name.substr(0, dot));
    if (!this_group.empty() && this_group != group) text += this_group + ":\n";
    group = this_group;
    const std::string key(dot == std::string_view::npos ? option.name
                                                        : option.name.substr(dot + 1));
    text += fmt::format("{}{}: {}\n", group.empty() ? "" : "  ", key,
                        yaml_value(node, option, resolved.value));
    provenance += fmt::format("  {}: {}\n", option.name, yaml_quoted(resolved.source));
  }
  return text + resolved_rules_yaml(node) + provenance;
}

std::string configuration_document() {
  std::string text(kDocumentHead);
  for (const OptionDescription& option : option_table()) {
    std::string anchor;
    for (const char letter : option.name) {
      if (letter != '.') anchor += letter;
    }
    text += fmt::format("| [{}](#{}) | {} | {} |\n", option.name, anchor, default_text(option),
                        option.hot_changeable ? "each run" : "the node");
  }
  for (const OptionDescription& option : option_table()) {
    text += fmt::format("\n## {}\n\n{}\n\n{}\n\n", option.name, option.description, option.advice);
    text += fmt::format("- default: {}\n- value: {}\n", default_text(option), option.unit);
    const bool has_range = option.type == OptionType::kPercent ||
                           option.type == OptionType::kCount ||
                           option.type == OptionType::kMilliseconds;
    if (has_range) text += fmt::format("- allowed: {} to {}\n", option.value_min, option.value_max);
    text += fmt::format("- environment: `{}`\n", option.environment);
    if (!option.flag.empty()) text += fmt::format("- command line: {}\n", flag_text(option));
  }
  return text;
}

}  // namespace cairn::cli
