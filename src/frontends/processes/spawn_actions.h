// SPDX-License-Identifier: Apache-2.0
// The changes that a program wants to a child's descriptors before it starts
// (posix_spawn_file_actions_t), readable.
//
// libc keeps the actions in a form of its own, so the hooks note each one as it is added. The notes
// hang on the unused tail of the application's object: copies of the object share them, as they
// share libc's own list.
//
// Thread safety: as the object itself. Ownership: drop() frees the notes.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>

namespace cairn {

struct SpawnAction {
  enum class Kind : unsigned char {
    kDuplicate,
    kClose,
    kOpen,
    kCloseFrom,
    kChangeDirectory,
    kChangeToDescriptor,
    kSetForeground
  };
  Kind kind = Kind::kClose;
  int fd = -1;           // the descriptor acted on; kDuplicate: the source
  int to = -1;           // kDuplicate: the target
  int flags = 0;         // kOpen
  mode_t mode = 0;       // kOpen
  char* path = nullptr;  // kOpen, kChangeDirectory; owned by the notes
};

class SpawnNotes {
 public:
  // Null when nothing was noted for `actions` (or it is null).
  static const SpawnNotes* of(const posix_spawn_file_actions_t* actions);
  // After libc accepted the action. `path` is copied. When memory is short the notes are marked
  // incomplete.
  static void add(posix_spawn_file_actions_t* actions, const SpawnAction& action);
  static void init(posix_spawn_file_actions_t* actions);
  static void drop(posix_spawn_file_actions_t* actions);

  bool is_complete() const { return is_complete_; }
  unsigned count() const { return count_; }
  const SpawnAction& at(unsigned index) const { return list_[index]; }
  // The largest descriptor that any action names.
  int highest() const;

 private:
  bool grow();

  SpawnAction* list_ = nullptr;
  unsigned count_ = 0;
  unsigned capacity_ = 0;
  bool is_complete_ = true;
};

}  // namespace cairn
