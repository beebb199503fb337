// SPDX-License-Identifier: Apache-2.0
// fsync() and its relatives: a success means that the backing store has the data.
#include <fcntl.h>
#include <unistd.h>

#include "base/system_call.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/file_io.h"
#include "frontends/common/hook.h"
#include "frontends/common/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int)> fsync{"fsync"};
constinit RealCall<int(int)> fdatasync{"fdatasync"};
constinit RealCall<void()> sync{"sync"};
constinit RealCall<int(int)> syncfs{"syncfs"};
constinit RealCall<int(int, off_t, off_t, unsigned)> sync_file_range{"sync_file_range"};
constinit RealCall<int(int, off_t, off_t, int)> fadvise{"posix_fadvise64"};
constinit RealCall<ssize_t(int, off_t, size_t)> readahead{"readahead"};
}  // namespace
}  // namespace real

namespace {

// Every file that this process has open. What other processes wrote, they or the service store.
void store_own_files() {
  DescriptorTable::for_each([](int, OpenFile& file) { (void)file_sync(file, false); });
}

void advise(OpenFile& file, off_t offset, off_t length, int advice) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return;
  tell_about(*actor, file, AccessKind::kAdvice, static_cast<std::uint64_t>(offset),
             static_cast<std::uint64_t>(length), advice);
}

}  // namespace
}  // namespace cairn

using cairn::advise;
using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(int, fsync, (int fd)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::fsync(fd);
  return with_errno(cairn::file_sync(*file, true));
}

CAIRN_HOOK(int, fdatasync, (int fd)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::fdatasync(fd);
  return with_errno(cairn::file_sync(*file, true));
}

CAIRN_HOOK(void, sync, ()) {
  if (DescriptorTable::any()) {
    const cairn::ErrnoKeeper keeper;
    cairn::store_own_files();
  }
  cairn::real::sync();
}

CAIRN_HOOK(int, syncfs, (int fd)) {
  if (DescriptorTable::any()) cairn::store_own_files();
  OpenFile* file = DescriptorTable::find(fd);
  return cairn::real::syncfs(file == nullptr ? fd : file->private_fd());
}

CAIRN_HOOK(int, sync_file_range, (int fd, off_t offset, off_t length, unsigned flags)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::sync_file_range(fd, offset, length, flags);
  constexpr unsigned kKnown =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (offset < 0 || length < 0 || offset + length < 0 || (flags & ~kKnown) != 0)
    return with_errno(-EINVAL);
  if (flags == 0) return 0;
  const int result = cairn::file_sync(*file, false);
  if (result < 0) return with_errno(result);
  return cairn::real::sync_file_range(file->private_fd(), offset, length, flags);
}

// The advice is the prefetcher's; the kernel's page cache is not where the data will be read from.
CAIRN_HOOK(int, posix_fadvise, (int fd, off_t offset, off_t length, int advice)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::fadvise(fd, offset, length, advice);
  if (length < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE) return EINVAL;
  // No length means: to the end of the file.
  if (offset >= 0) advise(*file, offset, length == 0 ? UINT32_MAX : length, advice);
  return 0;
}
CAIRN_TWIN(posix_fadvise, posix_fadvise64);

CAIRN_HOOK(ssize_t, readahead, (int fd, off_t offset, size_t length)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::readahead(fd, offset, length);
  if (!file->may_read) return with_errno<ssize_t>(-EBADF);
  if (offset >= 0 && length > 0)
    advise(*file, offset, static_cast<off_t>(length), POSIX_FADV_WILLNEED);
  return 0;
}
