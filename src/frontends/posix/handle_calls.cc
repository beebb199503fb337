// SPDX-License-Identifier: Apache-2.0
// Descriptors that come from elsewhere than a path: of a file's handle, out of another process's
// table, and the O_PATH descriptor that open_tree() makes.
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "base/signal_gate.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/file_duplicates.h"
#include "frontends/files/file_opening.h"
#include "frontends/libc/hook.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/posix/raw_calls.h"

namespace cairn {
namespace {

// Opens with `flags`, but for O_TRUNC, which waits until it is known whether the file is buffered.
template <typename Open>
long open_unnamed(int flags, Open&& open) {
  const bool truncates = truncates_later(flags);
  const int asked = truncates ? flags & ~O_TRUNC : flags;
  const auto fd = static_cast<int>(open(asked));
  if (fd < 0) return fd;
  if (const int error = manage_opened(fd, asked); error < 0) {
    sys::close(fd);
    return error;
  }
  return (flags & O_TRUNC) != 0 ? truncate_opened(fd, DescriptorTable::find(fd), !truncates) : fd;
}

// The kernel compares two descriptors of this process: are they of one description?
bool is_one_description(int one, int other) {
  const long self = sys::getpid();
  return sys::call(SYS_kcmp, self, self, KCMP_FILE, one, other) == 0;
}

}  // namespace

long open_handle(int mount, void* handle, int flags) {
  return open_unnamed(flags, [&](int asked) {
    return sys::call(SYS_open_by_handle_at, mount, sys::word(handle), asked);
  });
}

long open_tree_managed(int directory, const char* path, unsigned flags) {
  const long fd = sys::call(SYS_open_tree, directory, sys::word(path), flags);
  if (fd >= 0) note_path_descriptor(static_cast<int>(fd));
  return fd;
}

// A descriptor of this process itself is duplicated. From another process, as from a socket, the
// caller gets a placeholder, which answers EBADF.
long get_descriptor(int process, int target, unsigned flags) {
  const long fd = sys::call(SYS_pidfd_getfd, process, target, flags);
  const SignalGateGuard gate;
  OpenFile* const file = fd >= 0 ? hold_file(target) : nullptr;
  if (file == nullptr) return fd;
  if (is_one_description(static_cast<int>(fd), target))
    note_duplicate(*file, static_cast<int>(fd), true);
  release_held(*file);
  return fd;
}

}  // namespace cairn

CAIRN_HOOK(int, open_by_handle_at, (int mount, void* handle, int flags)) {
  return static_cast<int>(cairn::with_errno(cairn::open_handle(mount, handle, flags)));
}

CAIRN_HOOK(int, pidfd_getfd, (int process, int target, unsigned flags)) {
  return static_cast<int>(cairn::with_errno(cairn::get_descriptor(process, target, flags)));
}
