// SPDX-License-Identifier: Apache-2.0
// Which files are buffered: regular files below the managed directories that no exclude pattern
// names.
//
// A file is judged by where it really is (the kernel's own name of the open descriptor), not by the
// path that the program used, so `..`, symbolic links and relative paths need no handling. A
// pattern is matched against the whole path, against the path below the managed directory, and,
// when it has no slash, against the last component.
//
// Thread safety: configure() before the first open; manages() from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

class PathFilter {
 public:
  // Both are lists separated by colons; null is an empty list.
  static void configure(const char* directories, const char* excludes);
  // All files are managed that no exclude pattern names: for a process in which only those files
  // come here that are to be buffered.
  static void manage_everything();
  // Finds out where the directories really are. Called at the first open; cheap afterwards.
  static void resolve();
  // False when no file of this mount can be managed: saves asking for the path.
  static bool may_manage_mount(std::uint64_t mount);
  // Requires: the descriptor is open.
  static bool manages(int fd);
  // Writes the canonical path of an open file to `path` and returns the part of it that lies below
  // its managed directory; null when it lies below none, or has no path.
  static const char* place_of(int fd, char* path, std::size_t size);
  // Whether files in the open directory may be managed: it is a managed directory, or below one.
  static bool may_manage_in(int directory);
  // The judgement itself. Requires: a canonical absolute path.
  static bool manages_path(const char* path);
};

}  // namespace cairn
