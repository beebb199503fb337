// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/elf_probe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/descriptor_path.h"
#include "base/system_call.h"

namespace cairn {
namespace {

// The kernel follows as many "#!" lines before it gives up with ELOOP.
constexpr int kScriptDepthMax = 5;
// The kernel reads so much of a file to find out what it is.
constexpr std::size_t kHeadBytes = 256;
constexpr unsigned kProgramHeadersMax = 64;
constexpr std::size_t kNotesBytesMax = 1024;
constexpr std::uint32_t kGoBuildIdNote = 4;
constexpr unsigned long kNoSetuidMount = 2;  // ST_NOSUID of statfs::f_flags

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#else
constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

// Reads exactly `length` bytes at `offset`.
bool read_at(int fd, void* buffer, std::size_t length, std::uint64_t offset) {
  return sys::pread(fd, buffer, length, static_cast<off_t>(offset)) == static_cast<ssize_t>(length);
}

// Whether the loader will run the program in secure mode and so ignore LD_PRELOAD.
bool gains_privileges(int fd) {
  if (sys::call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_MODE | STATX_UID | STATX_GID, &status) < 0)
    return false;
  const auto user = static_cast<uid_t>(sys::call(SYS_getuid));
  const auto group = static_cast<gid_t>(sys::call(SYS_getgid));
  auto new_user = static_cast<uid_t>(sys::call(SYS_geteuid));
  auto new_group = static_cast<gid_t>(sys::call(SYS_getegid));
  const bool is_setgid = (status.stx_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if ((status.stx_mode & S_ISUID) != 0 || is_setgid) {
    struct statfs mount;
    const bool ignored = sys::call(SYS_fstatfs, fd, sys::word(&mount)) == 0 &&
                         (static_cast<unsigned long>(mount.f_flags) & kNoSetuidMount) != 0;
    if (!ignored && (status.stx_mode & S_ISUID) != 0) new_user = status.stx_uid;
    if (!ignored && is_setgid) new_group = status.stx_gid;
  }
  if (new_user != user || new_group != group) return true;
  // File capabilities change nothing for root.
  if (user == 0) return false;
  return sys::call(SYS_fgetxattr, fd, sys::word("security.capability"), 0, 0) > 0;
}

bool is_glibc_loader(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  return std::strncmp(name, "ld-linux", 8) == 0 || std::strncmp(name, "ld64.so", 7) == 0 ||
         std::strncmp(name, "ld-2.", 5) == 0 || std::strncmp(name, "ld.so", 5) == 0;
}

bool has_go_note(const unsigned char* notes, std::size_t size) {
  std::size_t position = 0;
  while (position + sizeof(Elf64_Nhdr) <= size) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + position, sizeof note);
    position += sizeof note;
    if (note.n_namesz > size - position) return false;
    if (note.n_type == kGoBuildIdNote && note.n_namesz >= 3 &&
        std::memcmp(notes + position, "Go", 3) == 0) {
      return true;
    }
    const std::size_t body = ((note.n_namesz + 3) & ~std::size_t{3}) +
                             ((std::size_t{note.n_descsz} + 3) & ~std::size_t{3});
    if (body > size - position) return false;
    position += body;
  }
  return false;
}

// The loader itself, run as a program, has no interpreter and honours LD_PRELOAD all the same.
bool is_named_as_loader(int fd) {
  char link[kDescriptorPathBytes];
  write_descriptor_path(fd, link);
  char path[512];
  const long length = sys::readlinkat(AT_FDCWD, link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return is_glibc_loader(path);
}

ForeignReason probe_elf(int fd, const unsigned char* head) {
  Elf64_Ehdr header;
  std::memcpy(&header, head, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return ForeignReason::kOtherArchitecture;
  }
  bool has_interpreter = false;
  for (unsigned index = 0; index < header.e_phnum && index < kProgramHeadersMax; ++index) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof segment, header.e_phoff + index * sizeof segment)) break;
    if (segment.p_type == PT_INTERP) {
      char loader[256] = {};
      const std::size_t length =
          segment.p_filesz < sizeof loader - 1 ? segment.p_filesz : sizeof loader - 1;
      if (!read_at(fd, loader, length, segment.p_offset)) break;
      if (!is_glibc_loader(loader)) return ForeignReason::kOtherLibc;
      has_interpreter = true;
    } else if (segment.p_type == PT_NOTE) {
      unsigned char notes[kNotesBytesMax];
      const std::size_t length = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
      if (read_at(fd, notes, length, segment.p_offset) && has_go_note(notes, length))
        return ForeignReason::kGo;
    }
  }
  if (has_interpreter || is_named_as_loader(fd)) return ForeignReason::kNone;
  return ForeignReason::kStatic;
}

// Cuts the interpreter's path out of a "#!" line; null when there is none.
char* interpreter_of(char* head) {
  char* path = head + 2;
  while (*path == ' ' || *path == '\t') ++path;
  char* end = path;
  while (*end != '\0' && *end != '\n' && *end != ' ' && *end != '\t') ++end;
  *end = '\0';
  return end == path ? nullptr : path;
}

}  // namespace

ProgramProbe probe_program(int directory, const char* path, int flags, BeforeProbe before) {
  ProgramProbe result;
  char head[kHeadBytes + 1];
  char interpreter[kHeadBytes + 1];
  for (int depth = 0; depth <= kScriptDepthMax && path != nullptr; ++depth) {
    const bool is_descriptor = (flags & AT_EMPTY_PATH) != 0 && *path == '\0';
    // A descriptor's file is looked at through the descriptor itself, which may be a placeholder.
    int fd = directory;
    if (!is_descriptor) {
      const int nofollow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
      fd = sys::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | nofollow);
      if (fd < 0) return result;
    }
    if (before != nullptr) before(fd);
    const ssize_t length = sys::pread(fd, head, kHeadBytes, 0);
    head[length > 0 ? length : 0] = '\0';
    const bool is_elf = length >= static_cast<ssize_t>(sizeof(Elf64_Ehdr)) &&
                        std::memcmp(head, ELFMAG, SELFMAG) == 0;
    const bool is_script = length > 2 && head[0] == '#' && head[1] == '!';
    if (is_elf) {
      result.foreign = probe_elf(fd, reinterpret_cast<const unsigned char*>(head));
      if (result.foreign == ForeignReason::kNone && gains_privileges(fd))
        result.foreign = ForeignReason::kPrivileged;
    }
    if (!is_descriptor) sys::close(fd);
    if (!is_script) return result;
    result.is_script = true;
    char* next = interpreter_of(head);
    if (next == nullptr) return result;
    std::strcpy(interpreter, next);
    path = interpreter;
    directory = AT_FDCWD;
    flags = 0;
  }
  return result;
}

const char* text_of(ForeignReason reason) {
  switch (reason) {
    case ForeignReason::kNone:
      return "interceptable";
    case ForeignReason::kStatic:
      return "statically linked";
    case ForeignReason::kGo:
      return "a Go program";
    case ForeignReason::kOtherLibc:
      return "not linked against glibc";
    case ForeignReason::kOtherArchitecture:
      return "for another architecture";
    case ForeignReason::kOtherUser:
      return "runs as another user";
    case ForeignReason::kOtherRoot:
      return "under another root directory";
    case ForeignReason::kPrivileged:
      return "runs with raised privileges";
  }
  return "unknown";
}

}  // namespace cairn
