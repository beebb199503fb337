// SPDX-License-Identifier: Apache-2.0
//
// The commands for durable tiers at rest: `cairn recover` and `cairn check`.
//
// Thread safety: one thread. Errors: Failure.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

struct RecoverCommandOptions {
  std::vector<std::string> directories;
  std::string rescue_folder;  // empty: cairn-rescued in the tier's directory
  bool dry_run = false;
};
// Brings what the tiers' logs hold to the backing store. Returns: 0, or kExitNotStored when
// something is not at its place.
int recover_tiers(const RecoverCommandOptions& options);

struct CheckCommandOptions {
  std::vector<std::string> directories;
  bool repair = false;
};
// Verifies the tiers' logs. Returns: 0, or kExitNotStored when something durable is damaged, or is
// left to repair.
int check_tiers(const CheckCommandOptions& options);

}  // namespace cairn::cli
