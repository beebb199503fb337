// SPDX-License-Identifier: Apache-2.0
//
// `cairn profile [DIR...]`: measures the places of this machine, shows and keeps what was found.
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
  bool list = false;    // show what there is and what is known of it, measure nothing
  bool forget = false;  // remove what is known: of the directories, else everything
};

// Returns: 0, or 2 when one of the places could not be measured (the others were). Errors: throws
// Failure.
int run_profile(const ProfileOptions& options);

}  // namespace cairn::cli
