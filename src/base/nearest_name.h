// SPDX-License-Identifier: Apache-2.0
//
// The name that somebody probably meant who wrote another one.
//
// Thread safety: a pure function. Ownership: the result refers to one of the candidates.
#pragma once

#include <span>
#include <string_view>

namespace cairn {

// Returns: the candidate closest to `word` by edit distance when it is close enough to be a slip of
// the pen (a third of the letters), else an empty view.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace cairn
