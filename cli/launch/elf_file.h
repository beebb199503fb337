// SPDX-License-Identifier: Apache-2.0
//
// Reads from an executable or library what decides whether its I/O can be intercepted.
//
// The file is not trusted: every offset is checked against its size, and a damaged file yields what
// could be read. Both byte orders and classes are recognised; tables are read for files of this
// machine's kind.
//
// Thread safety: pure functions. Ownership: results are values.
//
//   const ElfFile file = read_elf_file("/bin/ls");
//   if (file.kind == FileKind::kElf && file.interpreter.empty()) ...  // static
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn::cli {

enum class FileKind {
  kMissing,  // cannot be opened; `error` says why
  kElf,      // the fields below hold
  kScript,   // "#!": script_interpreter holds
  kUnknown,  // neither
};

struct ElfFile {
  FileKind kind = FileKind::kMissing;
  int error = 0;

  bool same_class = false;            // class, byte order and machine are those of this process
  uint16_t machine = 0;               // EM_*
  std::string interpreter;            // PT_INTERP; empty: statically linked
  std::vector<std::string> needed;    // DT_NEEDED
  std::vector<std::string> imported;  // undefined dynamic symbols, sorted, without versions
  std::vector<std::string> exported;  // defined dynamic symbols, sorted
  bool has_go_build_info = false;     // section .go.buildinfo or .note.go.buildid
  bool is_damaged = false;            // an offset pointed outside the file

  std::string script_interpreter;  // "/bin/sh"
  std::string script_argument;     // "-e", or the command of /usr/bin/env
};

enum class ElfParts {
  kAll,
  // Without `imported` and `exported`, which are most of the work.
  kHeaders,
};

ElfFile read_elf_file(const std::string& path, ElfParts parts = ElfParts::kAll);

// The same for the bytes of a file; read_elf_file maps the file and calls this.
ElfFile parse_elf(const unsigned char* bytes, size_t size, ElfParts parts = ElfParts::kAll);

}  // namespace cairn::cli
