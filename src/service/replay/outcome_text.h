// SPDX-License-Identifier: Apache-2.0
// What recovery has made of a file, for people.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>

#include "service/replay/recovery.h"

namespace cairn::durable {

const char* name_of(Outcome outcome);

// One line, or several, about a file that is not simply at its place; else empty.
// `is_foretold`: nothing has been done yet.
std::string text_of(const RecoveredFile& file, bool is_foretold);

}  // namespace cairn::durable
