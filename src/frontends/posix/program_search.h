// SPDX-License-Identifier: Apache-2.0
// Which file execvp() and posix_spawnp() are going to start.
//
// Thread safety: any thread; also in a vfork child (no allocation).
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/system_call.h"

namespace cairn {

// The path of `file` along $PATH in `buffer`, `file` itself when it has a slash, null when there is
// none.
inline const char* search_program(const char* file, char* buffer, std::size_t size) {
  if (std::strchr(file, '/') != nullptr) return file;
  const std::size_t file_length = std::strlen(file);
  const char* path = ::getenv("PATH");
  if (path == nullptr) path = "/bin:/usr/bin";  // what libc takes then
  for (;;) {
    const std::size_t length = std::strcspn(path, ":");
    if (length + file_length + 3 <= size) {
      std::memcpy(buffer, path, length);
      std::size_t end = length;
      if (length == 0) buffer[end++] = '.';
      buffer[end++] = '/';
      std::memcpy(buffer + end, file, file_length + 1);
      if (sys::call(SYS_faccessat, -100, sys::word(buffer), X_OK) == 0) return buffer;
    }
    if (path[length] == '\0') return nullptr;
    path += length + 1;
  }
}

}  // namespace cairn
