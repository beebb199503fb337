// SPDX-License-Identifier: Apache-2.0
// One open description of a buffered file as this process holds it, and what can be done with it.
//
// The offset and the status flags live in the arena (memory/catalog/description_table.h), where
// dup, fork and exec share them; here is what belongs to the process: the private descriptor of the
// backing file, the hold, and how many of the application's descriptors refer to it. Data calls on
// it are in file_io.h.
//
// All functions return a result or -errno and leave errno alone.
//
// Thread safety: any thread. Ownership: records come from a pool that never gives memory back, so a
// thread that uses a record while another closes it reads stale fields but never unmapped memory.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "frontends/client/session.h"
#include "memory/backing/backing_file.h"
#include "memory/buffer/bucket_hint.h"
#include "memory/buffer/object_io.h"
#include "memory/catalog/description_table.h"

namespace cairn {

// Flag of OpenDescription::flags: the program took a flock() or open-file-description lock, which
// has to end with the description though the service may still hold a descriptor of it.
inline constexpr std::uint32_t kHasOwnLocks = std::uint32_t{1} << 30;

struct OpenFile {
  // What a hit reads.
  OpenDescription* description = nullptr;
  ObjectIndex object = ObjectIndex::kNone;
  bool may_read = false;
  bool may_write = false;
  bool reads_plainly = false;  // may_read, and no rules of O_DIRECT to be looked at (direct_io.h)
  // By the service's ledger, for as long as anybody may have it from here (unheld_files.h).
  bool is_kept_through = false;
  BucketHint hint;
  BackingFile* backing = nullptr;  // points to `backing_storage`
  // What close, fork and exec need.
  DescriptionIndex index = DescriptionIndex::kNone;
  std::uint32_t generation = 0;                // of the description, when it was adopted
  std::atomic<std::uint64_t> direct_rules{0};  // of direct_io.cc; 0: not asked for yet
  HoldIndex hold = HoldIndex::kNone;
  HoldIndex transit = HoldIndex::kNone;      // made before fork, taken over by the child
  std::atomic<std::int32_t> descriptors{0};  // the application's descriptors in this process
  OpenFile* next_free = nullptr;
  alignas(BackingFile) unsigned char backing_storage[sizeof(BackingFile)] = {};

  int private_fd() const { return backing->fd(); }
  // The status flags as F_GETFL gives them.
  std::uint32_t flags() const {
    return description->flags.load(std::memory_order_relaxed) & ~(kOffsetInKernel | kHasOwnLocks);
  }
  bool is_offset_in_kernel() const {
    return (description->flags.load(std::memory_order_relaxed) & kOffsetInKernel) != 0;
  }
};

// For a call of this thread on `file`. Requires: Session::actor_if_any() gave `actor`.
inline ObjectAccess access_of(Actor& actor, OpenFile& file) {
  return ObjectAccess{actor, file.object, *file.backing, Session::instance(), file.index};
}

// Tells the service that the program has opened the file, closes it, or what it says that it will
// read (POSIX_FADV_*).
void tell_about(Actor& actor, OpenFile& file, AccessKind kind, std::uint64_t offset = 0,
                std::uint64_t length = 0, int advice = 0);

// Opens a path as open(2) does and buffers it if it is managed. Returns a descriptor or -errno.
int open_managed(int directory, const char* path, int flags, mode_t mode);

// In whose name this thread is about to open a path, for an OpeningGuard; null when it is nobody's
// business. A process attaches before the kernel opens its first managed file: afterwards somebody
// could have unlinked it, and thrown away what is not stored, in the time that attaching takes.
const Actor* opening_actor(int directory, const char* path, int flags);

// Whether an open of this path would give a buffered file, were it one for reading or writing.
bool may_be_buffered(const char* path);

// Looks at a descriptor that was just opened by other means (mkostemp, openat2...) and buffers its
// file if it is managed. `flags` are those of the open; O_TRUNC must not be among them. The number
// stays the same. 0, or -EIO when it must not be used.
int manage_opened(int fd, int flags);

// Puts an O_PATH descriptor of the same file in the place of the real one, so that a call that the
// library does not know fails loudly instead of reading what is not up to date.
bool place_placeholder(int fd, bool close_on_exec);

// An O_PATH descriptor was opened. It is not buffered, but it keeps a file without a name alive for
// fstat() and for another open through /proc: from the first one on, close does not throw the data
// of such files away.
void note_path_descriptor(int fd);

// Whether there has been a record without a private descriptor, which works on the application's
// own: at such a number the kernel finds the file.
bool has_files_in_place();

// The O_TRUNC that an open left out until it was known whether the file is buffered (`file`, else
// null). Returns `fd`, or closes it and returns -errno, as the open would have failed.
int truncate_opened(int fd, OpenFile* file);

// Makes an inherited O_PATH placeholder `fd` ours: description, generation and hold as the parent
// passed them on (the hold already belongs to this process). Takes ownership of `private_fd`, which
// may be `fd` itself when that is a real descriptor. Returns null when it does not fit, and when
// `fd` is past the end of the table: then a real descriptor stands there.
OpenFile* adopt(int fd, DescriptionIndex index, std::uint32_t generation, int private_fd,
                HoldIndex hold);
// A further descriptor of an adopted record (dup), tracked as far as the table goes.
void adopt_again(int fd, OpenFile* file);

// Closes one of the application's descriptors that is tracked. Returns 0 or -errno; the descriptor
// is gone either way.
int close_tracked(int fd);
// Gives up what the table says about `fd` without closing the number itself: something else sits
// there already.
int forget_tracked(int fd);
// The kernel made `to` a duplicate of the tracked `from`; `to` is not tracked yet.
void note_duplicate(OpenFile& file, int to, bool close_on_exec);
// After FD_CLOEXEC of a tracked descriptor changed: the private descriptor must survive exec when
// one of the application's does.
void update_close_on_exec(OpenFile& file);

// A hold of this process on a description that had `generation` when it was known to be the right
// one. kNone when it is another one by now, or the table of holds is full. Requires: attached.
HoldIndex hold_if_live(DescriptionIndex index, std::uint32_t generation);

// In a forked child that has attached: takes over, or makes, a hold for every record.
void take_over_holds(Owner parent);

}  // namespace cairn
