// SPDX-License-Identifier: Apache-2.0
//
// `cairn schema check`: are schemas in order, without starting anything?
//
// Thread safety: one per process. Ownership: nothing is kept.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// Prints a line for each schema that is in order.
// Returns: the exit status. Errors: throws Failure that lists the mistakes of all the others.
int check_schemas(const std::vector<std::string>& files);

}  // namespace cairn::cli
