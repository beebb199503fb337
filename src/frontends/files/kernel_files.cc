// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "frontends/files/inherited_through.h"
#include "frontends/files/unheld_files.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Past this many the rest is held until the process ends.
constexpr unsigned kFilesMax = 4096;
constexpr unsigned kFirstSweep = 256;
static_assert(kFirstSweep < kFilesMax, "a full table is swept");

struct Shared {
  ObjectIndex object = ObjectIndex::kNone;
  HoldIndex hold = HoldIndex::kNone;
  bool is_open = false;
};
constinit Shared files[kFilesMax] = {};
constinit std::atomic<unsigned> file_count{0};
constinit unsigned sweep_at = kFirstSweep;
constinit unsigned capacity = kFilesMax;

LocalLock& lock() { return process_lock(ProcessLock::kKernelFiles); }

// Requires: the lock.
Shared* find(ObjectIndex object) {
  Shared* end = files + file_count.load(std::memory_order_relaxed);
  Shared* found =
      std::find_if(files, end, [object](const Shared& file) { return file.object == object; });
  return found == end ? nullptr : found;
}

void let_go(Actor& actor, ObjectIndex object, HoldIndex hold) {
  actor.memory->descriptions().release(hold, actor.self);
  abandon_through(actor, object);
}

// Lets go of the files that the process has closed. Requires: the lock.
void sweep(Actor& actor) {
  const unsigned count = file_count.load(std::memory_order_relaxed);
  for (unsigned at = 0; at < count; ++at) files[at].is_open = false;
  const bool is_known = for_each_kernel_descriptor([&](int fd) {
    StoreStatus status;
    if (is_placeholder(fd) || store_status(fd, &status) < 0) return;
    const ObjectIndex object = actor.memory->objects().find(status.key);
    if (Shared* file = object == ObjectIndex::kNone ? nullptr : find(object)) file->is_open = true;
  });
  unsigned kept = 0;
  for (unsigned at = 0; at < count; ++at) {
    const Shared file = files[at];
    if (file.is_open || !is_known) {
      files[kept++] = file;
    } else {
      let_go(actor, file.object, file.hold);
    }
  }
  CAIRN_DCHECK(kept <= count && count <= capacity);
  file_count.store(kept, std::memory_order_relaxed);
  sweep_at = std::min(capacity, std::max(kFirstSweep, 2 * kept));
}

// Puts the hold into the table. False when there is no room.
bool insert(Actor& actor, ObjectIndex object, HoldIndex hold) {
  LocalGuard guard(lock());
  const unsigned count = file_count.load(std::memory_order_relaxed);
  if (find(object) != nullptr) {
    let_go(actor, object, hold);  // another thread was faster
    return true;
  }
  if (count >= capacity) return false;
  files[count] = Shared{object, hold, true};
  file_count.store(count + 1, std::memory_order_relaxed);
  return true;
}

// False when a table is full.
bool hold_through(const ObjectAccess& open) {
  Actor& actor = open.actor;
  const HoldIndex hold = actor.memory->descriptions().hold_through(open.index, actor.self);
  if (hold == HoldIndex::kNone) {
    leave_through(actor, open.index);
    return false;
  }
  if (insert(actor, open.index, hold)) return true;
  let_go(actor, open.index, hold);
  return false;
}

constinit std::atomic<bool> has_yielded{false};

// A real descriptor of the file for the number of a placeholder, with the program's flags and its
// offset. `*is_extra`: a description of its own, to be closed.
int descriptor_for_kernel(OpenFile& file, bool* is_extra) {
  const std::uint32_t flags = file.flags();
  *is_extra = file.twin_fd < 0 && file.withheld_flags() != 0;
  const Actor* actor = Session::instance().actor_if_any();
  const off_t offset = file.is_offset_in_kernel()
                           ? sys::lseek(file.shared_fd(), 0, SEEK_CUR)
                           : static_cast<off_t>(file.description->offset.load());
  int real = file.shared_fd();
  if (*is_extra) {
    constexpr std::uint32_t kKept = O_ACCMODE | O_APPEND | O_DIRECT | O_SYNC | O_DSYNC;
    char path[kDescriptorPathBytes];
    write_descriptor_path(file.private_fd(), path);
    real = sys::openat(AT_FDCWD, path, static_cast<int>(flags & kKept) | O_CLOEXEC);
    if (real < 0) {  // it may not be opened again
      *is_extra = false;
      real = file.shared_fd();
    }
  }
  if (*is_extra || actor == nullptr) {
    sys::lseek(real, offset, SEEK_SET);
  } else {
    (void)give_offset_to_kernel(*actor, *file.description, real);
  }
  return real;
}

// The record stays, and with it the description, for calls of other threads that are under way.
void yield(int fd, OpenFile& file) {
  StoreStatus status;
  // A file that cannot be shared keeps its placeholder, which answers EBADF.
  const bool is_shared = file.backing->status(&status) == 0 &&
                         KernelFiles::share(file.private_fd(), status, file.object) == 0;
  if (is_shared && PrivateDescriptors::is_private(file.private_fd())) {
    bool is_extra = false;
    const TwinGuard guard;
    const int real = descriptor_for_kernel(file, &is_extra);
    sys::dup3(real, fd, survives_exec(fd) ? 0 : O_CLOEXEC);
    if (is_extra && !PosixLocks::keeps_open(file.object, real)) sys::close(real);
  }
  DescriptorTable::take(fd);
}

}  // namespace

bool KernelFiles::any() { return file_count.load(std::memory_order_relaxed) != 0; }

void KernelFiles::set_capacity(unsigned most) {
  capacity = std::min(most, kFilesMax);
  sweep_at = std::min(capacity, kFirstSweep);
}

int KernelFiles::share(int fd, const StoreStatus& status, ObjectIndex known) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return session.use_unserved(fd);
  {
    LocalGuard guard(lock());
    if (known != ObjectIndex::kNone && find(known) != nullptr) return 0;
    // A vfork child has our memory, but not our descriptors.
    const bool is_many = file_count.load(std::memory_order_relaxed) >= sweep_at;
    if (is_many && !is_vfork_child()) sweep(*actor);
  }
  const int flags = sys::fcntl(fd, F_GETFL);
  PosixBacking file(fd, flags & (O_ACCMODE | O_APPEND));
  const bool may_write = (flags & O_ACCMODE) != O_RDONLY;
  const ObjectIndex object = open_object(*actor, file, status, may_write, &session);
  bool is_held = false;
  bool is_owed = false;
  if (object != ObjectIndex::kNone) {
    const ObjectAccess open{*actor, object, file, session};
    is_owed = open.object().is_in_trouble(kOwedByLog);
    is_held = !is_owed && enter_through(open) == 0 && hold_through(open);
    close_object(open, may_write);
    file.close_extra();
  }
  if (is_owed) return -EIO;
  return is_held ? 0 : session.keep_through(fd, protocol::UnservedReason::kTableFull);
}

bool KernelFiles::has_everything() { return has_yielded.load(std::memory_order_acquire); }

void KernelFiles::yield_everything() {
  Session& session = Session::instance();
  if (!session.is_configured() || is_vfork_child()) return;
  // What the other process opens it can only note in this one's name.
  session.attach();
  session.share_descriptors();
  has_yielded.store(true, std::memory_order_seq_cst);
  DescriptorTable::for_each([](int fd, OpenFile& file) { yield(fd, file); });
}

void KernelFiles::keep_for_program() {
  Session& session = Session::instance();
  Actor* const actor = any() ? session.actor_if_any() : nullptr;
  if (actor == nullptr) return;
  int error = 0;
  for_each_kernel_descriptor([&](int fd) {
    StoreStatus status;
    if (!survives_exec(fd) || store_status(fd, &status) < 0 || !S_ISREG(status.mode)) return;
    const ObjectIndex known = actor->memory->objects().find(status.key);
    if (known == ObjectIndex::kNone || actor->object(known).through.load() == 0) return;
    // A service that is stopped is waited for once.
    if (error != -ETIMEDOUT) error = session.keep_through(fd, protocol::UnservedReason::kNone);
    if (error >= 0) return;
    PosixBacking file(fd, O_RDONLY);
    (void)enter_through_for_good(ObjectAccess{*actor, known, file, session});
    file.close_extra();
  });
}

void KernelFiles::count_again() {
  if (!any()) return;
  for (unsigned at = 0; at < file_count.load(std::memory_order_relaxed); ++at)
    files[at].hold = inherit_through(files[at].object);
}

}  // namespace cairn
