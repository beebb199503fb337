// SPDX-License-Identifier: Apache-2.0
//
// The commands that speak of files on a running node: `cairn set`, `pin`, `unpin`, `stage-in`,
// `stage-out`.
//
// Thread safety: one thread. Errors: Failure.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/file_selection.h"

namespace cairn::cli {

struct SetOptions {
  FileSelection files;
  std::vector<std::string> properties;  // "mode=scratch"; see `cairn set --help`
};
// Rules of the running node for the files that are opened from now on.
int set_properties(const SetOptions& options);

struct PinOptions {
  FileSelection files;
  std::string tier;  // empty: wherever the blocks are
  bool pinned = true;
};
// Blocks stay in their tier, or may leave it again. Holds at once.
int pin_files(const PinOptions& options);

struct StageOptions {
  FileSelection files;
  std::string tier;
  bool in = true;
};
// Files into a tier, or stored and out of all tiers, with progress.
int stage_files(const StageOptions& options);

}  // namespace cairn::cli
