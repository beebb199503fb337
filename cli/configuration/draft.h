// SPDX-License-Identifier: Apache-2.0
//
// A configuration while settings are applied to it, one option after the other.
//
// The settings of most options go straight into the configuration. Some wait here, because what
// they come to depends on other options or on the machine (machine_settings.h, configuration.cc).
//
// Thread safety: none. Ownership: owns what it holds, but borrows the roots of the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/configuration/setting_item.h"
#include "cli/configuration/settings.h"
#include "cli/configuration/tier_settings.h"

namespace cairn::cli {

struct Draft {
  explicit Draft(const MachineRoots& machine)
      : roots(machine), tiers(machine, [this](const std::string& source, const std::string& text) {
          complain(source, text);
        }) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  // Every mistake is collected, so that the user sees all of them at once.
  void complain(const std::string& source, const std::string& text) {
    problems.push_back(source + ": " + text);
  }

  const MachineRoots& roots;
  Configuration configuration;

  // What the last layer says of options that wait; nothing where no layer names them.
  std::optional<SettingItem> name;
  std::optional<SettingItem> schema;
  std::optional<SettingItem> remember;
  std::vector<SettingItem> buffer;
  std::vector<SettingItem> scratch;
  std::optional<uint64_t> ram_bytes;     // nothing: as much as suits the machine
  std::optional<uint64_t> swap_bytes;    // the same
  std::optional<uint64_t> log_bytes;     // nothing: as much as suits the durable tier
  std::optional<Durability> durability;  // nothing: the best that the node has
  TierSettings tiers;

  std::map<std::string_view, std::string> sources;  // of the options that a layer names
  std::vector<std::string> problems;
};

}  // namespace cairn::cli
