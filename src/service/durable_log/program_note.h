// SPDX-License-Identifier: Apache-2.0
// The line of the file `programs` beside a durable log: which memory the node has that its programs
// map, and when (left_programs.h).
//
// Thread safety: pure functions. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cairn::durable {

inline constexpr std::size_t kProgramNoteBytesMax = 256;

struct ProgramNote {
  std::uint64_t boot = 0;  // the mark of the machine's start
  unsigned major = 0;      // of the memory's device, as in /proc/PID/maps
  unsigned minor = 0;
  std::uint64_t inode = 0;
  unsigned has_older = 0;  // the log may have records of an earlier start
  bool operator==(const ProgramNote&) const = default;
};

// With its end of line; shorter than kProgramNoteBytesMax.
std::string program_note_line(const ProgramNote& note);
// None where the first line of the text is none that is whole.
std::optional<ProgramNote> parse_program_note(const std::string& text);

// Whether a line of /proc/PID/maps shows the memory of the note.
bool is_map_of(const std::string& line, const ProgramNote& note);

}  // namespace cairn::durable
