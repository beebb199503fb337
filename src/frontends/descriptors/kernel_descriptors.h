// SPDX-License-Identifier: Apache-2.0
// Which descriptors the process really has, as the kernel lists them.
//
// Thread safety: any thread; also in a vfork child (system calls and stack only).
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/descriptor_path.h"
#include "base/system_call.h"

namespace cairn {

// visit(int fd) for every open descriptor but the one used for asking. False when /proc is not
// there.
template <typename Visit>
bool for_each_kernel_descriptor(Visit&& visit) {
  const int directory = sys::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  // libc's structure is the kernel's struct linux_dirent64.
  constexpr std::size_t kLengthAt = offsetof(dirent64, d_reclen);
  constexpr std::size_t kNameAt = offsetof(dirent64, d_name);
  static_assert(kLengthAt == 16 && kNameAt == 19 && sizeof(dirent64::d_reclen) == 2);
  alignas(8) char buffer[2048];
  for (;;) {
    const long size = sys::call(SYS_getdents64, directory, sys::word(buffer), sizeof buffer);
    if (size <= 0) break;
    for (long position = 0; position < size;) {
      std::uint16_t length = 0;
      std::memcpy(&length, buffer + position + kLengthAt, sizeof length);
      const char* name = buffer + position + kNameAt;
      position += length;
      if (*name < '0' || *name > '9') continue;
      int fd = 0;
      for (; *name >= '0' && *name <= '9'; ++name) fd = fd * 10 + (*name - '0');
      if (fd != directory) visit(fd);
    }
  }
  sys::close(directory);
  return true;
}

// The same for a process whose only thread is the caller. Most programs begin with a few of the
// lowest numbers: where the count of the kernel (Linux 6.2) says that these are all, nobody reads
// the directory, whose entries the kernel makes one by one.
template <typename Visit>
bool for_each_descriptor_of_thread(Visit&& visit) {
  constexpr int kLowest = 16;
  struct ::statx status;
  const bool is_told = sys::statx(AT_FDCWD, "/proc/self/fd", 0, STATX_SIZE, &status) == 0;
  const std::uint64_t count = is_told ? status.stx_size : 0;
  // All before the first visit, which may open and close some.
  int found[kLowest];
  unsigned found_count = 0;
  for (int fd = 0; fd < kLowest && found_count < count; ++fd) {
    if (sys::fcntl(fd, F_GETFD) >= 0) found[found_count++] = fd;
  }
  if (count == 0 || found_count != count) return for_each_kernel_descriptor(visit);
  for (unsigned index = 0; index < found_count; ++index) visit(found[index]);
  return true;
}

inline bool is_close_on_exec(int fd) {
  const int flags = sys::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}
inline bool survives_exec(int fd) {
  const int flags = sys::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace cairn
