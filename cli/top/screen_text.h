// SPDX-License-Identifier: Apache-2.0
//
// Text that has a known width on a terminal and cannot drive it.
//
// Thread safety: pure functions. Ownership: results are values. Units: columns of the terminal.
// Errors: bytes that are no UTF-8 become question marks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cairn::cli {

// Controls, marks without width and changes of the writing direction become question marks, and so
// does all that is not ASCII where the terminal has nothing else. A text of more than `columns`
// loses its end; `keeps_end`: its beginning, as a path should.
std::string fit(std::string_view text, unsigned columns, bool is_ascii, bool keeps_end = false);

// The same, filled with spaces.
std::string padded(std::string_view text, unsigned columns, bool is_ascii);

unsigned columns_of(std::string_view safe_text);

// '#' for what is dirty, '=' for what else is used, '.' for what is free.
std::string bar(std::uint64_t dirty, std::uint64_t used, std::uint64_t capacity, unsigned columns);

// The last `columns` values, scaled to the largest of them.
std::string sparkline(const std::deque<double>& values, unsigned columns, bool is_ascii);

}  // namespace cairn::cli
