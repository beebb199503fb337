// SPDX-License-Identifier: Apache-2.0
//
// `cairn rescue DIRECTORY`: what a rescue could not store goes to its place.
//
// Thread safety: stateless functions. Ownership: results are values. Failures throw cli::Failure.
#pragma once

#include <string>

namespace cairn::cli {

struct RescueOptions {
  std::string directory;
  bool dry_run = false;
};

// Returns: 0 when all is at its place, and the directory removed; 74 when something is left there,
// or is lost. A dry run returns what another one would.
int finish_rescue(const RescueOptions& options);

}  // namespace cairn::cli
