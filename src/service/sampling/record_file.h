// SPDX-License-Identifier: Apache-2.0
// Writes the record of a run that is under way: what `cairn report` shows when nobody finishes it.
//
// Thread safety: one writer for each path. Errors: as the system says; an older record stays then.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace cairn::node {

// {"schema": "cairn-run-1", "ended": false, "timeline": ...}. Replaces the file as a whole.
Status write_record(const std::string& path, const nlohmann::json& timeline);

}  // namespace cairn::node
