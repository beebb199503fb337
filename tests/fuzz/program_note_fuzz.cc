// SPDX-License-Identifier: Apache-2.0
// The file `programs` of a durable log: any bytes, and a note of any values. A note that the reader
// takes can be written again and means the same. It names the memory with these numbers in
// /proc/PID/maps.
#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "service/durable_log/program_note.h"

namespace {

using namespace cairn::durable;

void check(const ProgramNote& note) {
  const std::string line = program_note_line(note);
  CAIRN_CHECK(line.size() < kProgramNoteBytesMax && line.find('\n') == line.size() - 1);
  CAIRN_CHECK(parse_program_note(line) == note);
  const std::string map =
      fmt::format("7f00-7f01 rw-s 00000000 {:02x}:{:02x} {} /memfd:cairn-control", note.major,
                  note.minor, note.inode);
  CAIRN_CHECK(is_map_of(map, note));
  ProgramNote other = note;
  other.inode ^= 1;
  CAIRN_CHECK(!is_map_of(map, other));
}

void read(const std::string& text, const ProgramNote& ours) {
  (void)is_map_of(text, ours);
  const auto note = parse_program_note(text);
  if (note) check(*note);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::FuzzInput input(data, size);
  const std::string text(input.rest());
  ProgramNote note;
  note.boot = input.take<std::uint64_t>();
  note.major = input.take<unsigned>();
  note.minor = input.take<unsigned>();
  note.inode = input.take<std::uint64_t>();
  note.has_older = input.take<std::uint8_t>();
  read(text, note);
  check(note);
  // One that was cut off anywhere is none, or is another note; and so is one with rubbish in it.
  std::string line = program_note_line(note);
  line.resize(input.take<std::uint8_t>() % line.size());
  read(line, note);
  read(line + std::string(input.rest()), note);
  return 0;
}
