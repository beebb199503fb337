// SPDX-License-Identifier: Apache-2.0
#include "frontends/libc/stream_mode.h"

#include <fcntl.h>

#include <cstring>

namespace cairn {

StreamMode parse_stream_mode(const char* mode) {
  // glibc looks at six letters after the first and ignores the rest.
  constexpr int kLettersMax = 6;
  StreamMode parsed;
  if (mode == nullptr) return parsed;
  int creation = 0;
  switch (*mode) {
    case 'r':
      break;
    case 'w':
      creation = O_CREAT | O_TRUNC;
      break;
    case 'a':
      creation = O_CREAT | O_APPEND;
      break;
    default:
      return parsed;
  }
  parsed.is_valid = true;
  bool updates = false;
  for (int index = 1; index <= kLettersMax && mode[index] != '\0' && mode[index] != ','; ++index) {
    if (mode[index] == '+') updates = true;
    if (mode[index] == 'x') creation |= O_EXCL;
    if (mode[index] == 'e') creation |= O_CLOEXEC;
  }
  const int access = updates ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
  parsed.flags = access | creation;
  parsed.is_append_only = *mode == 'a' && !updates;

  char* out = parsed.for_descriptor;
  *out++ = *mode;
  if (updates) *out++ = '+';
  const char* charset = std::strchr(mode, ',');
  // Two letters and the end.
  static_assert(sizeof parsed.for_descriptor > 3);
  const std::size_t room = sizeof parsed.for_descriptor - 3;
  if (charset != nullptr && std::strlen(charset) < room) std::strcpy(out, charset);
  return parsed;
}

}  // namespace cairn
