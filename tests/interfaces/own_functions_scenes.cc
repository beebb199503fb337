// SPDX-License-Identifier: Apache-2.0
// A program with functions of its own under names of libc's, which make the system call by its
// number. The library's syscall() must not come back to them.
#include <sys/syscall.h>
#include <unistd.h>

#include "scene.h"

using namespace scene;

namespace {

int calls = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  ++calls;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

extern "C" __attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t length,
                                                                off_t offset) {
  ++calls;
  return syscall(SYS_pread64, fd, to, length, offset);
}

SCENE(own_wrappers) {
  const int fd = make_file("f", "0123456789");
  char back[4] = {};
  say("pread", pread(fd, back, sizeof back, 3));
  say_bytes("back", back, sizeof back);
  say("fdatasync", fdatasync(fd));
  say("calls of our own", calls);
}
