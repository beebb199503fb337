// SPDX-License-Identifier: Apache-2.0
// The hint about a dataset that a rule of a schema gives for its files.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include "base/file_rule.h"
#include "base/status.h"
#include "policy/arrays/array_hint.h"

namespace cairn::arrays {

// Requires: the rule has one. Its pattern speaks of names where it has no "/", of paths where it
// begins with one, else of what is below some directory. Errors: kInvalid, what is no hint about
// it.
Result<ArrayHint> hint_of(const FileRule& rule);

}  // namespace cairn::arrays
