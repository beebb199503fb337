// SPDX-License-Identifier: Apache-2.0
//
// The commands that speak of files on a running node: `cairn set`, `pin`, `unpin`, `stage-in`,
// `stage-out`.
//
// Thread safety: one thread. Errors: Failure.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// What all of them take: files, directories, patterns, and a list of them in a file ("-": standard
// input), one a line.
struct FileSelection {
  std::string node;
  std::vector<std::string> paths;
  std::string list_file;
};

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
