// SPDX-License-Identifier: Apache-2.0
//
// What goes into a configuration by the flags of a command, and what comes out of it.
//
// Thread safety: plain values. Ownership: they own their strings.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/node_config.h"

namespace cairn::cli {

// What the flags of a command said.
struct CommandLineSettings {
  std::string config_file;
  // The values of flags by the name of their option; no values where the flag was not given.
  std::map<std::string, std::vector<std::string>, std::less<>> flags;
  // For the service itself: its file is already the resolved configuration, and its environment is
  // that of the user who started it.
  bool ignore_environment = false;

  // The last value of an option's flag, or an empty text.
  std::string flag(std::string_view option) const {
    const auto found = flags.find(option);
    return found == flags.end() || found->second.empty() ? "" : found->second.back();
  }
};

struct Configuration {
  NodeConfig node;
  // The settings that a run on a running node brings along.
  std::optional<BufferingMode> run_mode;
  std::optional<FlushTrigger> run_trigger;
  std::optional<Durability> run_durability;
  std::optional<std::string> run_policy;
  std::vector<std::string> run_scratch;
  bool report = true;
  uint32_t grace_seconds = 0;  // 0: as long as it takes
  // What `cairn advise` foretold of runs with this configuration. 0: it did not make it.
  uint64_t advised_io_ms = 0;
  uint64_t advised_io_min_ms = 0;
  uint64_t advised_io_max_ms = 0;
  uint64_t advised_compute_ms = 0;
  std::vector<std::string> warnings;
};

// What the configuration is for decides which options count.
enum class ConfigurationScope {
  kNode,         // a new node: all
  kAttachedRun,  // a run on a running node: the options marked "each run" alone
};

}  // namespace cairn::cli
