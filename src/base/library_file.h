// SPDX-License-Identifier: Apache-2.0
// Whether a shared library that another program is to load can be loaded, as far as its file tells:
// some of those who ask for one do not survive a file that is none (HDF5's plugins).
//
// Thread safety: pure reads of the file. Source: elf(5).
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/system_call.h"

namespace cairn {

// Returns: the problem with the opened file; null: there is none.
inline const char* library_file_problem(int file) {
  Elf64_Ehdr header{};
  struct ::statx status;
  if (sys::statx(file, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status) < 0 ||
      !S_ISREG(status.stx_mode) || sys::pread(file, &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is no library";
  }
#if defined(__x86_64__)
  constexpr unsigned kMachine = EM_X86_64;
#else
  constexpr unsigned kMachine = EM_AARCH64;
#endif
  const bool is_ours = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
  if (!is_ours || header.e_type != ET_DYN) return "is no library of this machine";
  // The table of sections is what a linker writes last.
  const std::uint64_t end =
      header.e_shoff + std::uint64_t{header.e_shentsize} * std::uint64_t{header.e_shnum};
  return end > status.stx_size ? "is cut off" : nullptr;
}

// The same of a path.
inline const char* library_problem(const char* path) {
  // A pipe of this name must not be waited for.
  const int file = sys::openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file == -ENOENT) return "is missing";
  if (file < 0) return "cannot be read";
  const char* const problem = library_file_problem(file);
  sys::close(file);
  return problem;
}

// What keeps HDF5 from a plugin in `folder`, which it lists before it loads anything from there;
// null: nothing.
inline const char* plugin_problem(const char* folder, const char* path) {
  const int directory = sys::openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory == -ENOENT) return "is missing";
  if (directory < 0) return "lies in a folder that cannot be read";
  sys::close(directory);
  return library_problem(path);
}

}  // namespace cairn
