// SPDX-License-Identifier: Apache-2.0
// A second preloaded library, below Cairn's: opening $SLOW_OPEN takes a second longer after the
// kernel has opened it. The file $SLOW_OPEN.opened says when that second begins.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int (*OpenAt)(int, const char*, int, ...);

static void stop_here(const char* path) {
  char marker[4096] = "";
  strncat(marker, path, sizeof marker - 16);
  strcat(marker, ".opened");
  long fd = syscall(SYS_openat, AT_FDCWD, marker, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (fd >= 0) syscall(SYS_close, fd);
  const struct timespec second = {1, 0};
  nanosleep(&second, NULL);
}

__attribute__((visibility("default"))) int openat64(int directory, const char* path, int flags,
                                                    ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  const OpenAt next = (OpenAt)dlsym(RTLD_NEXT, "openat64");
  const int fd = next(directory, path, flags, mode);
  const char* slow = getenv("SLOW_OPEN");
  if (fd >= 0 && (flags & O_PATH) == 0 && slow != NULL && path != NULL && strcmp(path, slow) == 0)
    stop_here(slow);
  return fd;
}

__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return openat64(AT_FDCWD, path, flags, mode);
}

__attribute__((visibility("default"))) int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return openat64(AT_FDCWD, path, flags, mode);
}
