// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/lent_descriptors.h"

#include <errno.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_use.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Files past this many stay in through mode until the process ends.
constexpr unsigned kLentMax = 4096;

struct Lent {
  ObjectIndex object = ObjectIndex::kNone;
  HoldIndex hold = HoldIndex::kNone;
};
constinit Lent lent_files[kLentMax] = {};
constinit std::atomic<unsigned> lent_count{0};

LocalLock& lent_lock() { return process_lock(ProcessLock::kAio); }

// Requires: the lock.
bool is_lent(ObjectIndex object) {
  const Lent* end = lent_files + lent_count.load(std::memory_order_relaxed);
  return std::any_of(static_cast<const Lent*>(lent_files), end,
                     [object](const Lent& file) { return file.object == object; });
}

void give_up(const Lent& file) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return;
  session.memory().descriptions().release(file.hold, actor->self);
  abandon_through(*actor, file.object);  // the requests may have made the file longer
}

// The file's bytes are the kernel's from here on. Requires: nothing; waits for the store.
int keep_with_kernel(OpenFile& file) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return 0;  // without a node the kernel has everything
  {
    LocalGuard guard(lent_lock());
    if (is_lent(file.object)) return 0;
  }
  FileUse use(file);
  if (!use.begin()) return -EBADF;
  if (const int error = enter_through(use.access(*actor)); error < 0) return error;
  const Lent lent{use.object(),
                  session.memory().descriptions().hold_through(use.object(), actor->self)};
  LocalGuard guard(lent_lock());
  const unsigned count = lent_count.load(std::memory_order_relaxed);
  if (is_lent(use.object())) {
    give_up(lent);  // another thread was faster
  } else if (count < kLentMax) {
    CAIRN_DCHECK(lent.object != ObjectIndex::kNone);
    lent_files[count] = lent;
    lent_count.store(count + 1, std::memory_order_relaxed);
  }
  return 0;
}

// A descriptor of the file as the program believes to have it. Where the file may not be opened
// again (it was made read-only, or the process has become somebody else), a duplicate of the
// private one serves, which can do everything but append.
int open_as_asked(const OpenFile& file) {
  constexpr std::uint32_t kKept = O_ACCMODE | O_APPEND | O_DIRECT | O_SYNC | O_DSYNC | O_NOATIME;
  std::uint32_t flags = file.flags() & kKept;
  const Actor* actor = Session::instance().actor_if_any();
  if (actor != nullptr && actor->object(file.object).handling().mode == BufferingMode::kSync)
    flags |= O_DSYNC;
  char path[kDescriptorPathBytes];
  write_descriptor_path(file.private_fd(), path);
  const int opened = sys::openat(AT_FDCWD, path, static_cast<int>(flags) | O_CLOEXEC);
  if (opened >= 0) return opened;
  return (flags & O_APPEND) != 0 ? opened : sys::fcntl(file.private_fd(), F_DUPFD_CLOEXEC, 0);
}

int place(int fd, const OpenFile& file) {
  const int real = open_as_asked(file);
  if (real < 0) return real;
  const bool survives = survives_exec(fd);
  const int placed = sys::dup3(real, fd, survives ? 0 : O_CLOEXEC);
  if (!PosixLocks::keeps_open(file.object, real)) sys::close(real);
  return placed < 0 ? placed : 0;
}

// Requires: the lock.
void put_placeholders_back(ObjectIndex object) {
  DescriptorTable::for_each([&](int fd, OpenFile& file) {
    if (file.object != object) return;
    if (!PrivateDescriptors::is_private(file.private_fd()) || is_placeholder(fd)) return;
    place_placeholder(fd, !survives_exec(fd));
  });
}

}  // namespace

int LentDescriptors::lend(int fd, OpenFile& file) {
  if (is_vfork_child()) return -EBADF;
  if (const int error = keep_with_kernel(file); error < 0) return error;
  if (PrivateDescriptors::is_private(file.private_fd())) {
    LocalGuard guard(lent_lock());
    return is_placeholder(fd) ? place(fd, file) : 0;
  }
  // The library works on the application's own descriptor, which therefore cannot append.
  return (file.flags() & O_APPEND) != 0 ? -EINVAL : 0;
}

void LentDescriptors::follow_flags(OpenFile& file) {
  if (lent_count.load(std::memory_order_relaxed) == 0) return;
  LocalGuard guard(lent_lock());
  if (!is_lent(file.object) || PosixLocks::is_locked(file.object)) return;
  // The next request lends it anew, with the flags of then.
  put_placeholders_back(file.object);
}

void LentDescriptors::take_back() {
  LocalGuard guard(lent_lock());
  unsigned kept = 0;
  const unsigned count = lent_count.load(std::memory_order_relaxed);
  for (unsigned at = 0; at < count; ++at) {
    const Lent file = lent_files[at];
    if (PosixLocks::is_locked(file.object)) {
      lent_files[kept++] = file;
      continue;
    }
    put_placeholders_back(file.object);
    give_up(file);
  }
  CAIRN_DCHECK(kept <= count && count <= kLentMax);
  lent_count.store(kept, std::memory_order_relaxed);
}

void LentDescriptors::leave_to_parent() {
  const unsigned count = lent_count.exchange(0, std::memory_order_relaxed);
  // fcntl() locks are not inherited, so nothing is lost with the descriptors.
  for (unsigned at = 0; at < count; ++at) put_placeholders_back(lent_files[at].object);
}

}  // namespace cairn
