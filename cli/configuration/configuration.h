// SPDX-License-Identifier: Apache-2.0
//
// From the layers (defaults by looking, file, environment, command line) to one checked
// configuration.
//
// A later layer replaces an option of an earlier one as a whole. Every mistake of every layer is
// collected and reported in one Failure, each with its place.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/node_config.h"
#include "cli/configuration/machine.h"

namespace cairn::cli {

// What the flags of a command said; empty or false: not given.
struct CommandLineSettings {
  std::string config_file;
  std::string name;
  std::string ram;
  std::string huge_pages;
  std::vector<std::string> tiers;
  std::vector<std::string> buffer;
  std::vector<std::string> exclude;
  std::vector<std::string> scratch;
  std::string swap;
  std::string schema;
  std::string mode;
  std::string trigger;
  std::string policy;
  bool no_report = false;
  // The service itself: its file is already the resolved configuration, and its environment is that
  // of whoever started it.
  bool ignore_environment = false;
};

struct Configuration {
  NodeConfig node;
  // Of a run on a running node: what it asks for itself.
  std::optional<BufferingMode> run_mode;
  std::optional<FlushTrigger> run_trigger;
  std::optional<std::string> run_policy;
  std::vector<std::string> run_scratch;
  bool report = true;
  std::vector<std::string> warnings;
};

// What the configuration is for decides which options are looked at.
enum class ConfigurationScope {
  kNode,         // a new node: everything
  kAttachedRun,  // a run on a running node: the options marked "each run" alone
};

// Errors: throws Failure that lists all mistakes.
Configuration resolve_configuration(const CommandLineSettings& command_line,
                                    ConfigurationScope scope = ConfigurationScope::kNode,
                                    const MachineRoots& roots = {});

// The configuration as a YAML file that resolves to the same again, with a comment per value.
std::string configuration_yaml(const NodeConfig& node);

// docs/configuration.md, from the option table.
std::string configuration_document();

}  // namespace cairn::cli
