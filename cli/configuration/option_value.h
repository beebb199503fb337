// SPDX-License-Identifier: Apache-2.0
//
// What an option has come to, as `cairn config show` prints it.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "base/option_table.h"
#include "cli/configuration/settings.h"

namespace cairn::cli {

std::string option_value_text(const Configuration& configuration, OptionId id);

}  // namespace cairn::cli
