// SPDX-License-Identifier: Apache-2.0
// Text of others, names of files above all, in a message of one line.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// The text with a question mark for each control character: it ends no line and tells a terminal
// nothing.
std::string printable(std::string_view text);

}  // namespace cairn
