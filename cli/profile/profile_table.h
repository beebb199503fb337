// SPDX-License-Identifier: Apache-2.0
//
// How profiles are shown: a table for people, JSON for scripts (docs/reference.md).
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "service/profiler/tier_figures.h"

namespace cairn::cli {

// A place of the machine, with figures where there are any.
struct ProfiledPlace {
  std::string place;  // a directory, "ram", or a device that is not mounted
  profiler::DeviceIdentity identity;
  std::optional<profiler::DeviceProfile> profile;
  std::string from;  // "measured 2026-11-21", "class default: ssd", "not mounted"
  // Without a profile, whether its class's figures are what a node would start with.
  bool has_default = true;
};

// A place that could not be measured.
struct ProfileFailure {
  std::string place;
  std::string message;
  std::string remedy;
};

// Three significant digits: "85 ns", "90.4 us", "4.17 ms", "1.2 s".
std::string latency_text(double seconds);

std::string profile_table(const std::vector<ProfiledPlace>& places);

nlohmann::json profile_document(const std::string& store_file,
                                const std::vector<ProfiledPlace>& places,
                                const std::vector<ProfileFailure>& failures);

}  // namespace cairn::cli
