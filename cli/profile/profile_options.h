// SPDX-License-Identifier: Apache-2.0
//
// The options of `cairn profile`, and the remedies that it knows.
//
// Thread safety: plain values and a pure function. Ownership: results are values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace cairn::cli {

struct ProfileOptions {
  // Empty: the memory, the directories of the configured file tiers, the working directory.
  std::vector<std::string> directories;
  std::string config_file;
  double seconds = 0;  // for each device; 0 for the default
  std::string space;   // of the test file; empty for the default
  bool json = false;
  bool list = false;    // show the places and their known figures, measure nothing
  bool forget = false;  // remove the figures of the directories, or all
  bool train = false;   // fit models to many experiments instead (train_command.h)
  std::string minutes;  // of a training; empty for the default
  std::string picture;  // of how its models fit; empty for none
  // Draws it. Given by the room that draws, which stands above this one.
  std::function<void(const std::string& lines)> draw;
};

// What to do about a place that cannot be measured; empty where nothing is known.
std::string remedy_for(const Status& status);

}  // namespace cairn::cli
