// SPDX-License-Identifier: Apache-2.0
//
// The two texts made of a configuration: the resolved YAML file of a node, and the reference
// document.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>

#include "cli/configuration/settings.h"

namespace cairn::cli {

// The configuration as a YAML file that resolves to the same again, and says where each value came
// from.
std::string configuration_yaml(const Configuration& configuration);

// docs/configuration.md, from the option table.
std::string configuration_document();

}  // namespace cairn::cli
