// SPDX-License-Identifier: Apache-2.0
//
// Reading the small text files of /proc and /sys.
//
// Thread safety: pure reads of the system. Ownership: results are values; lines refer to the text
// that was split. Errors: what cannot be read is empty, because every reader has an answer for
// "not known".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::profiler {

// Where the machine is read from, so that tests can show another one.
struct MachineRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string dev = "/dev";
};

// At most `bytes_max` of the file.
std::string read_text(const std::string& path, size_t bytes_max = size_t{1} << 24);

// The first line without trailing blanks.
std::string read_line(const std::string& path);

// A file that holds one decimal number.
std::optional<uint64_t> read_number(const std::string& path);

std::vector<std::string_view> split_lines(std::string_view text);

// Fields between single blanks or tabs; empty ones are dropped.
std::vector<std::string_view> split_fields(std::string_view text);

// The number after `key` in a file of "Key:   123 kB" lines, in bytes; 0 when it is missing.
uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key);

}  // namespace cairn::profiler
