// SPDX-License-Identifier: Apache-2.0
// fsync() and its relatives: a success means that the data is as durable as its level says.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/system_call.h"
#include "frontends/client/question.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_io.h"
#include "frontends/files/live_objects.h"
#include "frontends/libc/cancellation.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/file_handling.h"
#include "frontends/paths/path_filter.h"
#include "frontends/posix/late_calls.h"

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

bool has_dirty_files(std::uint64_t device) {
  const Session& session = Session::instance();
  if (!session.has_memory()) return false;
  bool is_any = false;
  for_each_live_object(session.memory().objects(), [&](ObjectIndex, const Object& object) {
    const bool is_meant = device == 0 || raw(object.store()) == device;
    const bool is_kept =
        object.handling().mode == BufferingMode::kScratch || object.has(kObjectUnlinked);
    is_any = is_meant && !is_kept && object.dirty_blocks.load() != 0;
    return !is_any;
  });
  return is_any;
}

// Stores all that the programs of the node have written to a file system (st_dev; 0: to all).
// Without a service this process can store its own open files: the rest is lost. Returns 0 or
// -errno.
int store_all_of(std::uint64_t device) {
  int error = 0;
  if (Session::instance().request_sync(device, &error)) return error;
  for_each_writer([&](OpenFile& file) {
    const Object& object = Session::instance().memory().objects().at(file.object);
    if (device != 0 && raw(object.store()) != device) return;
    const int result = file_sync(file, true);
    if (error == 0) error = result;
  });
  const auto is_dirty = [device] { return has_dirty_files(device); };
  return error == 0 && outlasts_a_moment(is_dirty) ? -EIO : error;
}

// What kSync calls the file system of a descriptor. Where one file system has files of several
// devices, all are meant.
std::uint64_t file_system_of(int fd) {
  constexpr std::uint32_t kOverlayMagic = 0x794c7630;
  constexpr std::uint32_t kBtrfsMagic = 0x9123683e;
  constexpr std::uint32_t kBcachefsMagic = 0xca451a4e;
  struct statfs system{};
  struct ::statx status;
  if (sys::call(SYS_fstatfs, fd, sys::word(&system)) < 0 ||
      sys::statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) < 0) {
    return 0;
  }
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  if (magic == kOverlayMagic || magic == kBtrfsMagic || magic == kBcachefsMagic) return 0;
  return makedev(status.stx_dev_major, status.stx_dev_minor);
}

// fsync() of a descriptor that is none of ours. The names of a managed directory are the service's
// business where it has a durable log.
int sync_unbuffered(int fd, int (*otherwise)(int)) {
  Session& session = Session::instance();
  struct ::statx status;
  // What kind of file it is does not change: no store has to be asked.
  const bool is_directory =
      sys::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
      S_ISDIR(status.stx_mode);
  if (!is_directory || (sys::fcntl(fd, F_GETFL) & O_PATH) != 0) return otherwise(fd);
  PathFilter::resolve();
  if (!PathFilter::may_manage_in(fd) || !session.attach()) return otherwise(fd);
  cancellation_point();
  const NodeMemory& memory = session.memory();
  const ObjectHandling handling = FileHandling::of(memory, fd, 0, O_RDWR);
  const bool in_store = handling.durability != Durability::kNode;
  const std::optional<int> answer = session.request_names_durable(fd, in_store);
  if (!answer) return otherwise(fd);
  if (*answer == -EIO) (void)otherwise(fd);
  return with_errno(*answer);
}

void advise(OpenFile& file, off_t offset, off_t length, int advice) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return;
  tell_about(*actor, file, AccessKind::kAdvice,
             {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length), advice});
}

// fsync() of a file of ours. A recording has how long it took.
int sync_and_tell(OpenFile& file) {
  const std::int64_t began_ns = monotonic_ns();
  const int result = file_sync(file, true);
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return result;
  const std::int64_t taken_ns = std::max<std::int64_t>(monotonic_ns() - began_ns, 0);
  constexpr std::int64_t kNsPerMicrosecond = 1000;
  tell_about(*actor, file, AccessKind::kSync,
             {0, static_cast<std::uint64_t>(taken_ns / kNsPerMicrosecond), 0});
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::advise;
using cairn::cancellation_point;
using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::Session;
using cairn::with_errno;

CAIRN_HOOK(int, fsync, (int fd)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) {
    if (!Session::instance().is_configured()) return cairn::real::fsync(fd);
    return cairn::sync_unbuffered(fd, [](int plain) { return cairn::real::fsync(plain); });
  }
  cancellation_point();
  return cairn::answer(fd, file, cairn::sync_and_tell(*file), [=] { return fsync(fd); });
}

CAIRN_HOOK(int, fdatasync, (int fd)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) {
    if (!Session::instance().is_configured()) return cairn::real::fdatasync(fd);
    return cairn::sync_unbuffered(fd, [](int plain) { return cairn::real::fdatasync(plain); });
  }
  cancellation_point();
  return cairn::answer(fd, file, cairn::sync_and_tell(*file), [=] { return fdatasync(fd); });
}

CAIRN_HOOK(void, sync, ()) {
  if (Session::instance().is_configured()) {
    const cairn::ErrnoKeeper keeper;
    (void)cairn::store_all_of(0);
  }
  cairn::real::sync();
}

CAIRN_HOOK(int, syncfs, (int fd)) {
  return cairn::with_open_file(fd, [](OpenFile*, int own) {
    if (!Session::instance().is_configured() || cairn::sys::fcntl(own, F_GETFD) < 0)
      return cairn::real::syncfs(own);
    const int error = cairn::store_all_of(cairn::file_system_of(own));
    const int result = cairn::real::syncfs(own);
    return result == 0 ? with_errno(error) : result;
  });
}

CAIRN_HOOK(int, sync_file_range, (int fd, off_t offset, off_t length, unsigned flags)) {
  return cairn::with_open_file(fd, [=](OpenFile* file, int real) {
    if (file == nullptr) return cairn::real::sync_file_range(real, offset, length, flags);
    constexpr unsigned kKnown =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (offset < 0 || length < 0 || offset + length < 0 || (flags & ~kKnown) != 0)
      return with_errno(-EINVAL);
    if (flags == 0) return 0;
    const int result = cairn::file_sync(*file, false);
    if (result < 0) return with_errno(result);
    return cairn::real::sync_file_range(real, offset, length, flags);
  });
}

// The advice goes to the prefetcher: these reads do not come from the kernel's page cache.
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
  if (static_cast<ssize_t>(length) < 0) return with_errno<ssize_t>(-EINVAL);
  if (offset >= 0 && length > 0)
    advise(*file, offset, static_cast<off_t>(length), POSIX_FADV_WILLNEED);
  return 0;
}
