// SPDX-License-Identifier: Apache-2.0
// `--what-if KEY=VALUE,...`: another configuration, or another machine.
//
// Thread safety: pure functions. Errors: Failure that names the key.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "policy/advice/forecast.h"
#include "service/profiler/machine_scan.h"
#include "service/profiler/tier_figures.h"

namespace cairn::cli {

// The device as advice sees it.
advice::DeviceSpeed speed_of(const profiler::TierFigures& figures);
advice::DeviceSpeed class_speed(profiler::DeviceClass device_class);

struct WhatIf {
  std::optional<double> ram_bytes;
  std::vector<advice::FileTierPlan> tiers;  // without directories
  std::optional<std::string> policy;
  std::optional<std::string> expert;
  std::optional<std::string> trigger;
  std::optional<std::string> mode;
  std::optional<advice::DurableLevel> durability;
  std::optional<double> prefetch_percent;
  std::optional<double> flush_streams;
  std::optional<profiler::DeviceClass> store;
  std::optional<double> page_cache_bytes;
  std::set<std::string, std::less<>> keys;  // that were given
  std::optional<double> dirty_bytes_max;

  // Whether anything of a configuration is in it.
  bool has_plan() const;
  void change(advice::Plan* plan) const;
};

void take_what_if(std::string_view text, WhatIf* what_if);

}  // namespace cairn::cli
