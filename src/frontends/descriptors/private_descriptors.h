// SPDX-License-Identifier: Apache-2.0
// The descriptors that the library keeps for itself: real descriptors of backing files, above what
// programs use.
//
// The application can neither close nor see them: close() of one answers EBADF, and dup2() onto one
// moves it away (number_room.h).
//
// Thread safety: any thread.
#pragma once

namespace cairn {

struct OpenFile;

class PrivateDescriptors {
 public:
  // A dup of `fd` at a high number; -errno. `close_on_exec` as given.
  static int make(int fd, bool close_on_exec);
  static void add(int fd);
  static void remove(int fd);
  // No private descriptor is above this.
  static int highest();
  // The descriptors of a file survive an exec, or do not. The application's own are left alone.
  static void set_survives_exec(const OpenFile& file, bool survives);
  // Whether the descriptor belongs to a backing file or to the session.
  static bool is_private(int fd);
  // A record works on the application's own descriptor, without a private one: at such a number the
  // kernel finds the file. has_files_in_place() tells whether there has ever been one.
  static void note_file_in_place();
  static bool has_files_in_place();
};

// After FD_CLOEXEC of a tracked descriptor changed: the private descriptor must survive exec when
// one of the application's does.
void update_close_on_exec(OpenFile& file);

}  // namespace cairn
