// SPDX-License-Identifier: Apache-2.0
// File rules as they travel over the control socket: one JSON object each, properties by name.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "base/file_rule.h"
#include "base/status.h"

namespace cairn::node {

nlohmann::json rule_to_json(const FileRule& rule);
// Errors: kInvalid naming the field; nothing is taken for granted about the shape.
Result<FileRule> rule_from_json(const nlohmann::json& object);

// "sequential" and so on; nothing when no hint has that name.
const char* name_of(PrefetchHint hint);
std::optional<PrefetchHint> prefetch_hint_named(std::string_view name);

}  // namespace cairn::node
