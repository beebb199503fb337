// SPDX-License-Identifier: Apache-2.0
//
// What goes into a configuration by the flags of a command, and what comes out of it.
//
// Thread safety: plain values. Ownership: they own their strings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/node_config.h"

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

}  // namespace cairn::cli
