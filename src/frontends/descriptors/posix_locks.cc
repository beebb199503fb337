// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/posix_locks.h"

#include <fcntl.h>

#include <atomic>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/private_descriptors.h"

namespace cairn {
namespace {

// Past this many locked files at once every file counts as locked, which costs descriptors and
// nothing else.
constexpr unsigned kLockedMax = 256;
constinit std::atomic<std::uint32_t> locked[kLockedMax] = {};
constinit std::atomic<std::uint32_t> locked_count{0};
constinit std::atomic<bool> is_overflown{false};
constinit std::atomic<pid_t> last_noted_by{0};
static_assert(raw(ObjectIndex::kNone) == 0, "a free entry names no object");

struct KeptDescriptor {
  ObjectIndex object = ObjectIndex::kNone;
  int fd = -1;
};
constexpr unsigned kKeptOpenMax = 256;
constinit KeptDescriptor kept_open[kKeptOpenMax] = {};  // under ProcessLock::kLockedObjects

}  // namespace

bool PosixLocks::any() { return locked_count.load(std::memory_order_relaxed) > 0; }

bool PosixLocks::is_locked(ObjectIndex object) {
  if (object == ObjectIndex::kNone || !any()) return false;
  if (is_overflown.load(std::memory_order_relaxed)) return true;
  for (const auto& entry : locked) {
    if (entry.load(std::memory_order_relaxed) == raw(object)) return true;
  }
  return false;
}

bool PosixLocks::may_pass_exec(ObjectIndex object) {
  return is_locked(object) && last_noted_by.load(std::memory_order_relaxed) == sys::getpid();
}

void PosixLocks::note(ObjectIndex object) {
  CAIRN_DCHECK(object != ObjectIndex::kNone);
  last_noted_by.store(sys::getpid(), std::memory_order_relaxed);
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  std::atomic<std::uint32_t>* free_entry = nullptr;
  for (auto& entry : locked) {
    const std::uint32_t seen = entry.load(std::memory_order_relaxed);
    if (seen == raw(object)) return;
    if (seen == 0 && free_entry == nullptr) free_entry = &entry;
  }
  if (free_entry == nullptr) {
    is_overflown.store(true, std::memory_order_relaxed);
    return;
  }
  free_entry->store(raw(object), std::memory_order_relaxed);
  locked_count.fetch_add(1, std::memory_order_relaxed);
  CAIRN_DCHECK(locked_count.load(std::memory_order_relaxed) <= kLockedMax);
}

void PosixLocks::drop(ObjectIndex object, int private_fd) {
  struct flock whole{};
  whole.l_type = F_UNLCK;
  whole.l_whence = SEEK_SET;
  sys::fcntl(private_fd, F_SETLK, sys::word(&whole));
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (auto& entry : locked) {
    if (entry.load(std::memory_order_relaxed) != raw(object)) continue;
    entry.store(0, std::memory_order_relaxed);
    locked_count.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool PosixLocks::keeps_open(ObjectIndex object, int fd) {
  // The child of a vfork has our memory, and descriptors and locks of its own.
  if (!is_locked(object) || is_vfork_child()) return false;
  // One in the table has a record that works on it, and looks like the program's.
  if (DescriptorTable::find(fd) == nullptr) PrivateDescriptors::add(fd);
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (KeptDescriptor& entry : kept_open) {
    if (entry.object != ObjectIndex::kNone) continue;
    CAIRN_DCHECK(fd >= 0);
    entry = {.object = object, .fd = fd};
    break;
  }
  return true;
}

void PosixLocks::set_kept_survive_exec(bool survive) {
  if (!any() || last_noted_by.load(std::memory_order_relaxed) != sys::getpid()) return;
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (const KeptDescriptor& entry : kept_open) {
    if (entry.object != ObjectIndex::kNone) sys::fcntl(entry.fd, F_SETFD, survive ? 0 : FD_CLOEXEC);
  }
}

bool PosixLocks::is_kept(int fd) {
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (const KeptDescriptor& entry : kept_open) {
    if (entry.object != ObjectIndex::kNone && entry.fd == fd) return true;
  }
  return false;
}

int PosixLocks::kept(ObjectIndex object) {
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (const KeptDescriptor& entry : kept_open) {
    if (object != ObjectIndex::kNone && entry.object == object) return entry.fd;
  }
  return -1;
}

int PosixLocks::take_kept(ObjectIndex object) {
  LocalGuard guard(process_lock(ProcessLock::kLockedObjects));
  for (KeptDescriptor& entry : kept_open) {
    if (entry.object != object) continue;
    const int fd = entry.fd;
    entry = {};
    return fd;
  }
  return -1;
}

}  // namespace cairn
