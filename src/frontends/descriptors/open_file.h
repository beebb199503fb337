// SPDX-License-Identifier: Apache-2.0
// The record of one open description of a buffered file, as this process holds it.
//
// The offset and the status flags live in the arena (memory/catalog/description_table.h), where
// dup, fork and exec share them. The record has what belongs to the process: the private descriptor
// of the backing file, the hold, and the count of the application's descriptors. file_opening.h
// fills a record, file_closing.h empties it, file_io.h reads and writes through it.
//
// Thread safety: any thread. Ownership: records come from a pool that never gives memory back, so a
// thread that uses a record while another closes it reads stale fields but never unmapped memory.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/ids.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/record_count.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/bucket_hint.h"
#include "memory/buffer/object_io.h"
#include "memory/catalog/description_table.h"

namespace cairn {

// The status flags that F_SETFL may change, on Linux.
inline constexpr std::uint32_t kSettableFlags = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;

// Flag of OpenDescription::flags: the program took a flock() or open-file-description lock. The
// lock has to end with the description, although the service may still hold a descriptor of it.
inline constexpr std::uint32_t kHasOwnLocks = std::uint32_t{1} << 30;

struct OpenFile {
  // A hit reads these.
  OpenDescription* description = nullptr;
  ObjectIndex object = ObjectIndex::kNone;
  bool may_read = false;
  bool may_write = false;
  bool reads_plainly = false;  // may_read, and O_DIRECT has no rules for it (direct_io.h)
  // The service's ledger keeps the file in through mode for as long as a process may have it from
  // this one (unheld_files.h).
  bool is_kept_through = false;
  // The program has mapped the file by it: the mapping keeps the description of shared_fd() alive.
  bool is_mapped = false;
  BucketHint hint;
  PosixBacking* backing = nullptr;  // points to `backing_storage`
  // Close, fork and exec need these.
  DescriptionIndex index = DescriptionIndex::kNone;
  std::uint32_t generation = 0;                // of the description, from when it became ours
  std::atomic<std::uint64_t> direct_rules{0};  // of direct_io.cc; 0: not known yet
  HoldIndex hold = HoldIndex::kNone;
  HoldIndex transit = HoldIndex::kNone;  // the parent makes it before fork for its child
  RecordCount count;                     // of the application's descriptors, and calls
  std::atomic<int> twin_fd{-1};          // of twin_descriptor.h; -1: none
  OpenFile* next_free = nullptr;
  std::uint32_t rests_since_ms = 0;  // of the pool
  alignas(PosixBacking) unsigned char backing_storage[sizeof(PosixBacking)] = {};

  // From here on `fd` is the private descriptor, of the same description.
  void work_on(int fd, int access_mode) {
    PosixBacking next(fd, access_mode);
    backing->give_extra_to(next);
    const bool was_shared = backing->is_shared();
    backing = new (backing_storage) PosixBacking(fd, access_mode);
    next.give_extra_to(*backing);
    if (was_shared) backing->note_shared();
  }
  // The description has ended with its last descriptor.
  bool has_lost_description() const {
    return description->generation.load(std::memory_order_acquire) != generation;
  }
  int private_fd() const { return backing->descriptor(); }
  // The description behind it is common to all sharers of the file past the buffers: it keeps
  // their offset (kOffsetInKernel), and the flock() and open-file-description locks.
  int shared_fd() const {
    const int twin = twin_fd.load(std::memory_order_acquire);
    return twin >= 0 ? twin : private_fd();
  }
  // Both, the second -1 where there is none.
  std::array<int, 2> real_fds() const { return {private_fd(), twin_fd.load()}; }
  // The status flags as F_GETFL gives them.
  std::uint32_t flags() const {
    const std::uint32_t known = description->flags.load(std::memory_order_relaxed);
    if (__builtin_expect((known & kOffsetInKernel) != 0, 0)) return flags_in_kernel();
    return known & ~kHasOwnLocks;
  }
  // Those of them that the private descriptor must not have, because it writes any bytes at any
  // place. On a file that may not be written O_APPEND does nothing.
  std::uint32_t withheld_flags() const { return withheld_flags(flags(), may_write); }
  static constexpr std::uint32_t withheld_flags(std::uint32_t flags, bool may_write) {
    return flags & static_cast<std::uint32_t>(may_write ? O_APPEND | O_DIRECT : O_DIRECT);
  }
  bool is_offset_in_kernel() const {
    return (description->flags.load(std::memory_order_relaxed) & kOffsetInKernel) != 0;
  }
  // Those who share the file past the buffers change the flags of the descriptor that they have.
  std::uint32_t flags_in_kernel() const;
};

static_assert((kHasOwnLocks & kOffsetInKernel) == 0, "two flags of ours");
static_assert(((kHasOwnLocks | kOffsetInKernel) & 0x0fff'ffff) == 0, "and none of the kernel's");
static_assert(std::is_trivially_destructible_v<OpenFile>, "the pool never destroys a record");

// For this thread's work on `file`, which nobody can close meanwhile: what may be closed is used
// by a FileUse (frontends/files/file_use.h). Requires: Session::actor_if_any() gave `actor`.
inline ObjectAccess access_of(Actor& actor, OpenFile& file) {
  return ObjectAccess{actor, file.object, *file.backing, Session::instance(), file.index};
}

// Advice of the program on a range of a file.
struct Advice {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  int advice = 0;  // POSIX_FADV_*
};
// Tells the service that the program has opened the file, closes it, or gives advice on it.
void tell_about(Actor& actor, OpenFile& file, AccessKind kind, const Advice& advice = {});

}  // namespace cairn
