// SPDX-License-Identifier: Apache-2.0
// The name that /proc has for a descriptor of this process.
//
// Thread safety: pure. Not by printf, which takes as long as all else that an open costs here.
#pragma once

#include <cstddef>
#include <cstring>

namespace cairn {

// "/proc/self/fd/<fd>", for a negative one a name that nothing has; the buffer needs
// kDescriptorPathBytes.
inline constexpr std::size_t kDescriptorPathBytes = 32;
inline void write_descriptor_path(int fd, char* out) {
  constexpr char kFolder[] = "/proc/self/fd/";
  std::memcpy(out, kFolder, sizeof kFolder - 1);
  char digits[12];
  int count = 0;
  auto rest = static_cast<unsigned>(fd);
  do {
    digits[count++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  out += sizeof kFolder - 1;
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
}

struct DescriptorPath {
  explicit DescriptorPath(int fd) { write_descriptor_path(fd, text); }
  char text[kDescriptorPathBytes];
};

}  // namespace cairn
