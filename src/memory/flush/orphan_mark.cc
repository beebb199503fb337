// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/orphan_mark.h"

#include <errno.h>
#include <fcntl.h>

#include <atomic>

#include "base/clock.h"
#include "base/system_call.h"

namespace cairn {

bool mark_orphaned(const NodeMemory& memory) {
  // What this process has made before is there, unless a recovery has been done with it.
  static constinit std::atomic<const void*> marked{nullptr};
  const ServiceBoard& board = memory.service_board();
  if (board.has_log.load() == 0 || board.detached.load() == ServiceBoard::kEndedInOrder)
    return true;
  if (marked.load(std::memory_order_acquire) == &board) return true;
  const int folder = sys::openat(AT_FDCWD, board.log_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;  // not visible from here, or gone: there is no other place
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int mark = sys::openat(folder, kOrphanMarkName, kNew, 0600);
  // Another process may have made it in this instant, and have it not safe yet.
  bool is_safe = (mark >= 0 && sys::fsync(mark) == 0) || mark == -EEXIST;
  is_safe = is_safe && sys::fsync(folder) == 0;
  if (mark >= 0) (void)sys::close(mark);
  (void)sys::close(folder);
  if (is_safe) marked.store(&board, std::memory_order_release);
  return is_safe;
}

std::int64_t orphaned_at_ns(const char* path) {
  struct ::statx found{};
  if (sys::statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MTIME, &found) != 0) return 0;
  return found.stx_mtime.tv_sec * kNanosPerSecond +
         static_cast<std::int64_t>(found.stx_mtime.tv_nsec);
}

}  // namespace cairn
