// SPDX-License-Identifier: Apache-2.0
//
// `cairn profile --train [DIR...]`: runs the experiments that teach the models of a device
// (service/training), and shows the models.
//
// Thread safety: one thread; SIGINT and SIGTERM are caught while experiments run. Ownership:
// nothing is kept but the journals beside the store's file.
#pragma once

#include "cli/profile/profile_options.h"
#include "service/profiler/profile_store.h"

namespace cairn::cli {

// Errors: throws Failure where options exclude each other.
void check_training_options(const ProfileOptions& options);

// Returns: 0, or 2 when a device could not be trained. An interrupted training ends the process
// by the signal. Errors: throws Failure.
int run_training(const ProfileOptions& options, const profiler::ProfileStore& store);

}  // namespace cairn::cli
