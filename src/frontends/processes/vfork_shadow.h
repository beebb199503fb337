// SPDX-License-Identifier: Apache-2.0
// Notes of the changes that vfork children make to descriptors of ours.
//
// Between vfork and exec a child works in its parent's memory with a descriptor table of its own: a
// close() or dup2() there must reach the kernel and leave our table, which is the parent's, alone.
// Here is noted what the child's descriptors mean, so that its exec can tell the new program.
//
// Thread safety: a child sees its own notes only; several threads may have a vfork child each.
// Limits: kChildren at a time and kNotes each; what does not fit is found out by the new program
// from the descriptors.
#pragma once

#include <cstdint>

namespace cairn {

struct OpenFile;

class VforkShadow {
 public:
  static constexpr unsigned kChildren = 64;
  static constexpr unsigned kNotes = 256;

  // In a vfork child: `fd` now refers to `file`, or to nothing of ours when null.
  static void note(int fd, OpenFile* file);
  // In a vfork child: what `fd` refers to, given what the parent's table says.
  static OpenFile* find(int fd, OpenFile* in_table);

  // Whether the calling child has noted what `fd` refers to now.
  static bool has_note(int fd);

  // False once a note found no room: find() may answer wrongly from then on.
  static bool is_complete();

  // visit(int fd, OpenFile* file_or_null) for all notes of the calling child.
  template <typename Visit>
  static void for_each(Visit&& visit) {
    const Child* child = mine();
    if (child == nullptr) return;
    for (unsigned index = 0; index < child->count; ++index) {
      visit(child->notes[index].fd, child->notes[index].file);
    }
  }

  struct Note {
    int fd;
    OpenFile* file;
  };
  struct Kept {
    const Note* notes = nullptr;
    unsigned count = 0;
    bool has_overflowed = false;
  };

  // Those of the calling child.
  static unsigned count();
  // Around exec: one that succeeds does not come back to forget the notes, so any child may take
  // their place. One that fails has them again from `room`, which is for count() of them.
  static Kept suspend(Note* room);
  static void resume(const Kept& kept);

 private:
  struct Child {
    std::int32_t pid;  // 0: free; negative: in exec, free if that succeeds
    unsigned count;
    bool has_overflowed;
    Note notes[kNotes];
  };
  static Child* mine();
  static Child* claim();

  static Child children_[kChildren];
  static bool has_overflowed_;  // there were too many children
};

}  // namespace cairn
