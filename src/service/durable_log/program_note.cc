// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/program_note.h"

#include <cinttypes>
#include <cstdio>

#include "base/check.h"

namespace cairn::durable {

std::string program_note_line(const ProgramNote& note) {
  char text[kProgramNoteBytesMax];
  const int length = std::snprintf(text, sizeof text, "%016" PRIx64 " %02x:%02x %" PRIu64 " %u\n",
                                   note.boot, note.major, note.minor, note.inode, note.has_older);
  CAIRN_CHECK(length > 0 && static_cast<std::size_t>(length) < sizeof text);
  return text;
}

std::optional<ProgramNote> parse_program_note(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  ProgramNote note;
  const int found = std::sscanf(line.c_str(), "%" SCNx64 " %x:%x %" SCNu64 " %u", &note.boot,
                                &note.major, &note.minor, &note.inode, &note.has_older);
  return found == 5 ? std::optional(note) : std::nullopt;
}

// Addresses, rights, offset, device, inode, path.
bool is_map_of(const std::string& line, const ProgramNote& note) {
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
  const int found = std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %" SCNu64, &major, &minor, &inode);
  return found == 3 && inode == note.inode && major == note.major && minor == note.minor &&
         line.find("/memfd:cairn-") != std::string::npos;
}

}  // namespace cairn::durable
