// SPDX-License-Identifier: Apache-2.0
// Words of the command line that mean the same to every parser.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// Whether the word at `index` can only be a flag's value: it is not empty, and begins with nothing
// that the parser knows.
bool is_plain_word(const std::vector<std::string>& words, size_t index);

}  // namespace cairn::cli
