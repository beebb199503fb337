// SPDX-License-Identifier: Apache-2.0
//
// How the command speaks: messages on stderr with the prefix "cairn: ", tables on stdout.
//
// Each message is one write(2), so that lines of several processes do not mix, and nothing is
// buffered across a fork.
//
// Thread safety: every function may be called from any thread. Ownership: none is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/printable_text.h"

namespace cairn::cli {

// One or more lines to stderr, each prefixed with "cairn: ".
void say(std::string_view text);

// say() and, on the next line, what to do about it.
void say_failure(std::string_view message, std::string_view remedy);

// Text to stdout as it is. An error (a closed pipe) is ignored: the reader has had enough.
void print(std::string_view text);

// Columns padded to their widest cell, two spaces between; numeric-looking columns are
// right-aligned where `right_aligned` has 'r' at that column.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment);

// Writes all of `text`. Returns: false on an error.
bool write_fully(int descriptor, std::string_view text);

bool stderr_is_terminal();

// Columns of the terminal on stderr, 80 when unknown.
unsigned terminal_width();

}  // namespace cairn::cli
