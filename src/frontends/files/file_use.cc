// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_use.h"

#include <errno.h>

#include "base/check.h"
#include "base/signal_gate.h"
#include "frontends/files/file_closing.h"

namespace cairn {

[[gnu::noinline]] bool FileUse::count() {
  enter_signal_gate();
  if (!file_.count.add_call()) {
    leave_signal_gate();
    return false;
  }
  is_counted_ = true;
  is_late_ = file_.object != object_;  // given back meanwhile
  descriptor_ = is_late_ ? -1 : file_.private_fd();
  return !is_late_;
}

[[gnu::noinline]] void FileUse::end() {
  CAIRN_DCHECK(is_counted_);
  release_held(file_);
  leave_signal_gate();
}

// The program's own number, if the record works on that, may be closed while this reads: by then
// the record has left it, and what was read may be another file's.
template <typename Call>
ssize_t FileUse::read_with(Call&& call) {
  if (!begin()) return -EBADF;
  for (;;) {
    const int before = file_.private_fd();
    const ssize_t got = call(*file_.backing);
    const int after = file_.private_fd();
    if (__builtin_expect(before == after, 1)) return got;
    descriptor_ = after;
  }
}

ssize_t FileUse::read(std::uint64_t offset, void* buffer, std::size_t length) {
  return read_with([=](Backing& behind) { return behind.read(offset, buffer, length); });
}

ssize_t FileUse::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  return read_with([=](Backing& behind) { return behind.read_once(offset, buffer, length); });
}

// Not again: reading changes the parts.
ssize_t FileUse::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  if (!begin()) return -EBADF;
  const int before = file_.private_fd();
  const ssize_t got = file_.backing->read_parts(offset, parts);
  return file_.private_fd() == before ? got : -EBADF;
}

void FileUse::will_read(std::uint64_t offset, std::size_t length) {
  if (begin()) file_.backing->will_read(offset, length);
}

ssize_t FileUse::write(std::uint64_t offset, const void* buffer, std::size_t length) {
  return begin() ? file_.backing->write(offset, buffer, length) : -EBADF;
}

ssize_t FileUse::write_once(std::uint64_t offset, std::span<const iovec> parts) {
  return begin() ? file_.backing->write_once(offset, parts) : -EBADF;
}

ssize_t FileUse::append(const void* buffer, std::size_t length, std::uint64_t* offset) {
  return begin() ? file_.backing->append(buffer, length, offset) : -EBADF;
}

int FileUse::status(StoreStatus* status) {
  return begin() ? file_.backing->status(status) : -EBADF;
}

int FileUse::truncate(std::uint64_t size) {
  return begin() ? file_.backing->truncate(size) : -EBADF;
}

int FileUse::truncate_as_called(std::uint64_t size) {
  return begin() ? file_.backing->truncate_as_called(size) : -EBADF;
}

int FileUse::allocate(int mode, std::uint64_t offset, std::uint64_t length) {
  return begin() ? file_.backing->allocate(mode, offset, length) : -EBADF;
}

int FileUse::set_mtime(std::int64_t mtime_ns) {
  return begin() ? file_.backing->set_mtime(mtime_ns) : -EBADF;
}

int FileUse::sync(SyncDepth depth) { return begin() ? file_.backing->sync(depth) : -EBADF; }

}  // namespace cairn
