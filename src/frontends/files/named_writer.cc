// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/named_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/files/file_closing.h"

namespace cairn {
namespace {

// A record of a locked file that may write, counted on; null: there is none.
OpenFile* hold_writer(ObjectIndex object) {
  if (!PosixLocks::is_locked(object)) return nullptr;
  OpenFile* held = nullptr;
  DescriptorTable::for_each([&](int, OpenFile& file) {
    if (held != nullptr || file.object != object || !file.may_write || !file.count.add_call())
      return;
    if (file.object == object && file.may_write) {
      held = &file;
    } else {
      release_held(file);  // the record has been another file's for a moment
    }
  });
  return held;
}

bool may_write(int fd) {
  const int flags = sys::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// What stays open reads, too: then no second one has to.
int open_writer(ObjectIndex object, const char* path) {
  if (PosixLocks::is_locked(object)) {
    const int kept = PosixLocks::kept(object);
    if (kept >= 0 && may_write(kept)) return kept;
    const int opened = sys::openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (opened != -EACCES) return opened;
  }
  return sys::openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
}

// What an open would say.
int ask_for_writing(const char* path) {
  const auto error =
      static_cast<int>(sys::call(SYS_faccessat2, AT_FDCWD, sys::word(path), W_OK, AT_EACCESS));
  return error == -ENOSYS ? 0 : error;
}

int access_mode_of(int fd) { return fd < 0 ? O_WRONLY : sys::fcntl(fd, F_GETFL) & O_ACCMODE; }

}  // namespace

NamedWriter::NamedWriter(ObjectIndex object, const char* path)
    : object_(object),
      record_(hold_writer(object)),
      fd_(record_ != nullptr ? -1 : open_writer(object, path)),
      error_(record_ != nullptr ? ask_for_writing(path) : (fd_ < 0 ? fd_ : 0)),
      own_(fd_, access_mode_of(fd_)) {
  CAIRN_DCHECK(record_ != nullptr || fd_ >= 0 || error_ < 0);
  backing().called_by_name(true);
}

NamedWriter::~NamedWriter() {
  backing().called_by_name(false);
  if (record_ != nullptr) release_held(*record_);
  own_.close_extra();
  if (fd_ < 0 || PosixLocks::is_kept(fd_)) return;
  if (!PosixLocks::keeps_open(object_, fd_)) sys::close(fd_);
}

}  // namespace cairn
