// SPDX-License-Identifier: Apache-2.0
// The file that has the record of a run which is under way: what `cairn report` shows when nobody
// finishes it.
//
// Thread safety: one writer for each path. Errors: as the system says; an older record stays then.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace cairn::node {

// {"schema": "cairn-run-1", "ended": false, "timeline": ...}
std::string record_text(const nlohmann::json& timeline);

// Makes the directory of the path. Replaces the file as a whole, unless `may_replace` says no when
// the text is on the device.
Status write_record(const std::string& path, const std::string& text,
                    const std::function<bool()>& may_replace);

}  // namespace cairn::node
