// SPDX-License-Identifier: Apache-2.0
//
// `cairn profile [DIR...]`: measures the places of this machine, shows and keeps the figures.
//
// Thread safety: one thread. Ownership: nothing is kept but the store's file.
#pragma once

#include <string>
#include <vector>

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
};

// Returns: 0, or 2 when one of the places could not be measured (the others were). Errors: throws
// Failure.
int run_profile(const ProfileOptions& options);

}  // namespace cairn::cli
