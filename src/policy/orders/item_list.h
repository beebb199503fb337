// SPDX-License-Identifier: Apache-2.0
// Text files with one item a line: its number, or the name of its file. Empty lines and lines that
// begin with '#' say nothing; a line may end as on Windows.
//
// Thread safety: pure functions. Ownership: results are values, four bytes for a number.
// Errors: that of opening or reading the file, or kInvalid with the file and the line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace cairn {

// As long as the longest path that Linux takes (PATH_MAX).
inline constexpr std::size_t kItemLineBytesMax = 4096;
// All the names of a list together, so that a mistaken path does not fill the memory.
inline constexpr std::size_t kItemNameBytesMax = std::size_t{1} << 30;

// Whether it is a regular file: to read a pipe may wait for ever, and a device may never end.
// Errors: kInvalid, or that of the file system.
Status check_text_file(const std::string& path);

// `items`: every number must be less. Requires: at most kOrderItemsMax, which is also the most
// lines that there may be.
Result<std::vector<std::uint32_t>> read_item_numbers(const std::string& path, std::uint64_t items);

Result<std::vector<std::string>> read_item_files(const std::string& path);

}  // namespace cairn
