// SPDX-License-Identifier: Apache-2.0
// How advice reads: for people, as JSON (docs/reference.md), and as a configuration.
//
// Thread safety: pure functions but write_advice_config(). Ownership: results are values.
#pragma once

#include <string>

#include "cli/advice/advice_told.h"

namespace cairn::cli {

std::string advice_text(const AdviceTold& told);
std::string advice_json(const AdviceTold& told);

// The configuration that is advised, as --config reads it; the mode bypass where Cairn is not to be
// used. Its first line says what it is.
std::string config_text(const AdviceTold& told);

// Errors: Failure for a file that is there (unless `force`), one that cannot be written, and a plan
// with a tier that has no directory yet.
void write_advice_config(const AdviceTold& told, const std::string& path, bool force);

}  // namespace cairn::cli
