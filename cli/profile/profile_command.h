// SPDX-License-Identifier: Apache-2.0
//
// `cairn profile [DIR...]`: measures the places of this machine, shows and keeps the figures.
//
// Thread safety: one thread. Ownership: nothing is kept but the store's file.
#pragma once

#include "cli/profile/profile_options.h"

namespace cairn::cli {

// Returns: 0, or 2 when one of the places could not be measured (the others were). Errors: throws
// Failure.
int run_profile(const ProfileOptions& options);

}  // namespace cairn::cli
