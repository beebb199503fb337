// SPDX-License-Identifier: Apache-2.0
// utimensat() and its relatives: the kernel sets the times, the buffer takes them over, so that a
// later flush of data does not undo them.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include <cstring>

#include "base/system_call.h"
#include "buffer/object_lifecycle.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/hook.h"
#include "frontends/common/real_calls.h"
#include "frontends/common/visible_status.h"
#include "frontends/posix/times.h"

namespace cairn {

namespace {
// A flush in flight may stamp the file between the program's call and our look at it: what was
// asked for counts. A store that keeps whole seconds only is believed.
StoreStamp with_requested(StoreStamp stamp, const timespec* times) {
  constexpr std::int64_t kRounding = 2 * kNanosPerSecond;
  if (times == nullptr || times[1].tv_nsec == UTIME_NOW || times[1].tv_nsec == UTIME_OMIT)
    return stamp;
  const std::int64_t requested = to_nanos(times[1]);
  const std::int64_t off = stamp.mtime_ns - requested;
  if (off >= kRounding || off <= -kRounding) stamp.mtime_ns = requested;
  return stamp;
}
}  // namespace

void adopt_kernel_times(OpenFile& file, bool mtime_set, const timespec* requested) {
  Actor* actor = Session::instance().actor_if_any();
  StoreStatus status;
  if (actor == nullptr || file.backing->status(&status) < 0) return;
  adopt_times(*actor, file.object, with_requested(status.stamp, requested), mtime_set);
}

void adopt_kernel_times_at(int directory, const char* path, int flags, bool mtime_set,
                           const timespec* requested) {
  struct ::statx status;
  if (!may_need_overlay() || sys::statx(directory, path, flags, kOverlayMask, &status) < 0) return;
  const ObjectIndex object = object_of(status);
  Actor* actor = Session::instance().actor_if_any();
  if (object == ObjectIndex::kNone || actor == nullptr) return;
  adopt_times(*actor, object, with_requested(stamp_of(status), requested), mtime_set);
}

namespace real {
namespace {
constinit RealCall<int(int, const char*, const timespec*, int)> utimensat{"utimensat"};
constinit RealCall<int(const char*, const timeval*)> utimes{"utimes"};
constinit RealCall<int(const char*, const timeval*)> lutimes{"lutimes"};
constinit RealCall<int(int, const char*, const timeval*)> futimesat{"futimesat"};
constinit RealCall<int(const char*, const utimbuf*)> utime{"utime"};
constinit RealCall<int(int, const timespec*)> futimens{"futimens"};
constinit RealCall<int(int, const timeval*)> futimes{"futimes"};
}  // namespace
}  // namespace real

namespace {

int set_times(OpenFile& file, const timespec* times) {
  const bool sets_mtime = times == nullptr || times[1].tv_nsec != UTIME_OMIT;
  const auto result =
      static_cast<int>(sys::call(SYS_utimensat, file.private_fd(), 0, sys::word(times), 0));
  if (result == 0) adopt_kernel_times(file, sets_mtime, times);
  return result;
}

bool to_timespecs(const timeval* from, timespec* to) {
  if (from == nullptr) return true;
  for (int index = 0; index < 2; ++index) {
    if (from[index].tv_usec < 0 || from[index].tv_usec >= 1'000'000) return false;
    to[index] = timespec{from[index].tv_sec, from[index].tv_usec * 1000};
  }
  return true;
}

int after_path_call(int result, int directory, const char* path, int flags, bool mtime_set,
                    const timespec* requested = nullptr) {
  if (result == 0) {
    const ErrnoKeeper keeper;
    adopt_kernel_times_at(directory, path, flags, mtime_set, requested);
  }
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(int, utimensat, (int directory, const char* path, const timespec* times, int flags)) {
  const bool mtime_set = times == nullptr || times[1].tv_nsec != UTIME_OMIT;
  const bool by_descriptor = path == nullptr || ((flags & AT_EMPTY_PATH) != 0 && *path == '\0');
  if (by_descriptor) {
    OpenFile* file = DescriptorTable::find(directory);
    if (file != nullptr) return with_errno(cairn::set_times(*file, times));
  }
  const int result = cairn::real::utimensat(directory, path, times, flags);
  if (path == nullptr) return result;
  return cairn::after_path_call(result, directory, path, flags, mtime_set, times);
}

CAIRN_HOOK(int, utimes, (const char* path, const timeval* times)) {
  return cairn::after_path_call(cairn::real::utimes(path, times), AT_FDCWD, path, 0, true);
}
CAIRN_HOOK(int, lutimes, (const char* path, const timeval* times)) {
  return cairn::after_path_call(cairn::real::lutimes(path, times), AT_FDCWD, path,
                                AT_SYMLINK_NOFOLLOW, true);
}
CAIRN_HOOK(int, utime, (const char* path, const utimbuf* times)) {
  return cairn::after_path_call(cairn::real::utime(path, times), AT_FDCWD, path, 0, true);
}

CAIRN_HOOK(int, futimens, (int fd, const timespec* times)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::futimens(fd, times);
  return with_errno(cairn::set_times(*file, times));
}

CAIRN_HOOK(int, futimes, (int fd, const timeval* times)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::futimes(fd, times);
  timespec converted[2];
  if (!cairn::to_timespecs(times, converted)) return with_errno(-EINVAL);
  return with_errno(cairn::set_times(*file, times == nullptr ? nullptr : converted));
}

CAIRN_HOOK(int, futimesat, (int directory, const char* path, const timeval* times)) {
  OpenFile* file = path == nullptr ? DescriptorTable::find(directory) : nullptr;
  if (file == nullptr) {
    const int result = cairn::real::futimesat(directory, path, times);
    if (path == nullptr) return result;
    return cairn::after_path_call(result, directory, path, 0, true);
  }
  timespec converted[2];
  if (!cairn::to_timespecs(times, converted)) return with_errno(-EINVAL);
  return with_errno(cairn::set_times(*file, times == nullptr ? nullptr : converted));
}
