// SPDX-License-Identifier: Apache-2.0
// The calls by which the driver reads and writes files: those of the preload library.
//
//   under `cairn run`   they stand before libc's already
//   with a node         the library is loaded beside the plugin, for the driver alone, and joins
//                       the node (cairn/join_node.h)
//   without a node      libc's
//
// What they are is found out at the first call and holds for the life of the process.
//
// Thread safety: any thread.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace cairn::driver {

// NOLINTBEGIN(readability-identifier-naming): libc's names.
struct FileCalls {
  int (*open)(const char*, int, ...);
  int (*close)(int);
  ssize_t (*pread)(int, void*, size_t, off_t);
  ssize_t (*pwrite)(int, const void*, size_t, off_t);
  int (*fstat)(int, struct stat*);
  int (*ftruncate)(int, off_t);
  int (*flock)(int, int);
  int (*remove)(const char*);
  // Null unless the driver alone comes by the node: what the rest of the program, and all that it
  // starts, reads of a file is what the backing store has.
  int (*store)(int);
};
// NOLINTEND(readability-identifier-naming)

// Notes where the plugin lies, before the program goes to another directory.
void note_place();

const FileCalls& file_calls();

// Keeps signal handlers out during calls of a library that does not stand before sigaction(). The
// signals that a thread causes by itself come through.
class QuietCall {
 public:
  explicit QuietCall(const FileCalls& calls);
  ~QuietCall();
  QuietCall(const QuietCall&) = delete;
  QuietCall& operator=(const QuietCall&) = delete;

 private:
  const bool is_needed_;
  sigset_t before_;
};

}  // namespace cairn::driver
