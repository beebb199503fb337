// SPDX-License-Identifier: Apache-2.0
// How libc's own streams reach buffered files: the five system calls at the bottom of every FILE.
//
// libc reads, writes, seeks, closes and stats a FILE through a table of function pointers that all
// streams share. Its entries for those five calls are replaced by ours, which serve descriptors
// that are buffered and leave all others to libc's functions. So fopen'ed files, stdin, stdout and
// stderr, wide streams and C++'s cout work unchanged and with libc's own buffering; a stream of our
// own (fopencookie) could do neither the standard streams nor wide characters.
//
// The entries are found by the addresses of libc's exported functions, not by position: a libc that
// is built otherwise is noticed, nothing is changed, and is_installed() stays false.
//
// Thread safety: install() once, before other threads use stdio; the calls are made from any
// thread.
#pragma once

#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace cairn {

// The calls on a buffered descriptor, with libc's conventions (-1 and errno).
struct StdioCalls {
  bool (*is_ours)(int fd);
  ssize_t (*read)(int fd, void* buffer, size_t length);
  ssize_t (*write)(int fd, const void* buffer, size_t length);
  off_t (*seek)(int fd, off_t offset, int whence);
  int (*close)(int fd);
  int (*stat)(int fd, struct stat* status);
};

// False when this libc's streams cannot be redirected; nothing has been changed then.
bool install_stdio_jumps(const StdioCalls& calls);
bool are_stdio_jumps_installed();

// A stream of `mode` over `fd`, whatever the kernel thinks of the descriptor. Null with errno when
// the mode is invalid or memory is short; `fd` then stays open. Requires: installed.
FILE* make_stream(int fd, const char* mode);

}  // namespace cairn
