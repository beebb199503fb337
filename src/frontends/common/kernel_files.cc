// SPDX-License-Identifier: Apache-2.0
#include "frontends/common/kernel_files.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>

#include "base/system_call.h"
#include "buffer/object_lifecycle.h"
#include "client/session.h"
#include "frontends/common/kernel_descriptors.h"

namespace cairn {
namespace {

// Past this many the rest is held until the process ends.
constexpr unsigned kFilesMax = 4096;
constexpr unsigned kFirstSweep = 256;

struct Shared {
  ObjectIndex object = ObjectIndex::kNone;
  HoldIndex hold = HoldIndex::kNone;
  bool is_open = false;
};
constinit Shared files[kFilesMax] = {};
constinit std::atomic<unsigned> file_count{0};
constinit unsigned sweep_at = kFirstSweep;

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
  leave_through(actor, object);
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
  file_count.store(kept, std::memory_order_relaxed);
  sweep_at = std::min(kFilesMax, std::max(kFirstSweep, 2 * kept));
}

}  // namespace

bool KernelFiles::any() { return file_count.load(std::memory_order_relaxed) != 0; }

void KernelFiles::share(int fd, const StoreStatus& status, ObjectIndex known) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return;
  {
    LocalGuard guard(lock());
    if (known != ObjectIndex::kNone && find(known) != nullptr) return;
    // A vfork child has our memory, but not our descriptors.
    const bool is_many = file_count.load(std::memory_order_relaxed) >= sweep_at;
    if (is_many && !is_vfork_child()) sweep(*actor);
  }
  const int flags = sys::fcntl(fd, F_GETFL);
  BackingFile file(fd, flags & (O_ACCMODE | O_APPEND));
  const bool may_write = (flags & O_ACCMODE) != O_RDONLY;
  const ObjectIndex object = open_object(*actor, file, status, may_write);
  if (object == ObjectIndex::kNone) return;
  const ObjectAccess open{*actor, object, file, session};
  if (enter_through(open) == 0) {
    const HoldIndex hold = actor->memory->descriptions().hold_through(object, actor->self);
    LocalGuard guard(lock());
    const unsigned count = file_count.load(std::memory_order_relaxed);
    if (find(object) != nullptr) {
      let_go(*actor, object, hold);  // another thread was faster
    } else if (count < kFilesMax) {
      files[count] = Shared{object, hold, true};
      file_count.store(count + 1, std::memory_order_relaxed);
    }
  }
  close_object(open, may_write);
  file.close_extra();
}

void KernelFiles::count_again() {
  if (!any()) return;
  Session& session = Session::instance();
  for (unsigned at = 0; at < file_count.load(std::memory_order_relaxed); ++at) {
    // Counted directly: the parent keeps the file in through mode at this moment.
    session.memory().objects().at(files[at].object).through.fetch_add(1, std::memory_order_seq_cst);
    files[at].hold = session.memory().descriptions().hold_through(files[at].object, session.self());
  }
}

}  // namespace cairn
