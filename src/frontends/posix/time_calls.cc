// SPDX-License-Identifier: Apache-2.0
// utimensat() and its relatives: the kernel sets the times, the buffer takes them over, so that a
// later flush of data does not undo them.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/visible_status.h"
#include "frontends/posix/late_calls.h"
#include "frontends/posix/times.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/unfinished_time.h"

namespace cairn {

void adopt_kernel_times(OpenFile& file) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return;
  // Under the lock, which keeps a settling out between the look and the adoption.
  OwnedGuard guard(actor->object(file.object).lock, actor->self, actor->owners());
  StoreStatus status;
  if (file.backing->status(&status) == 0) adopt_times(*actor, file.object, status.stamp, false);
}

void adopt_kernel_times(int directory, const char* path, int flags) {
  if (path == nullptr || !may_need_overlay()) return;
  struct ::statx status;
  if (sys::statx(directory, path, flags | AT_NO_AUTOMOUNT, kOverlayMask, &status) < 0) return;
  const ObjectIndex object = object_of(status);
  Actor* actor = object == ObjectIndex::kNone ? nullptr : Session::instance().actor_if_any();
  if (actor == nullptr) return;
  const Object& record = actor->object(object);
  OwnedGuard guard(actor->object(object).lock, actor->self, actor->owners());
  if (sys::statx(directory, path, flags | AT_NO_AUTOMOUNT, kOverlayMask, &status) == 0 &&
      key_of(status) == record.key() && record.has(kObjectLive)) {
    adopt_times(*actor, object, stamp_of(status), false);
  }
}

namespace real {
namespace {
constinit RealCall<int(int, const char*, const timespec*, int)> utimensat{"utimensat"};
constinit RealCall<int(int, const char*, const timeval*)> futimesat{"futimesat"};
constinit RealCall<int(int, const timespec*)> futimens{"futimens"};
constinit RealCall<int(int, const timeval*)> futimes{"futimes"};
}  // namespace
}  // namespace real

namespace {

bool sets_mtime(const timespec* times) {
  return times == nullptr || times[1].tv_nsec != UTIME_OMIT;
}

// The kernel's "now" is a tick's beginning and may lie before a stamp of ours: the node's clock
// says what time it is. Returns what to pass to the kernel in the place of `times`.
const timespec* with_our_now(const Object& object, const StampClock& clock, const timespec* times,
                             timespec* exact) {
  if (times != nullptr && times[1].tv_nsec != UTIME_NOW) return times;
  exact[0] = times == nullptr ? timespec{0, UTIME_NOW} : times[0];
  exact[1] = to_timespec(never_back(object.mtime_ns.load(std::memory_order_relaxed), clock.now()));
  return exact;
}

// Data that is on its way comes with the file's own time; until then the store bears another one.
const timespec* while_unfinished(const Object& object, const timespec* asked, timespec* marked) {
  const bool is_unfinished = object.dirty_blocks.load(std::memory_order_acquire) != 0 &&
                             object.through.load(std::memory_order_acquire) == 0;
  if (!is_unfinished || asked == nullptr) return asked;
  const long nanos = asked[1].tv_nsec;
  if (nanos < 0 || nanos >= kNanosPerSecond) return asked;  // omitted, or none of a time
  marked[0] = asked[0];
  marked[1] = to_timespec(unfinished_time(to_nanos(asked[1])));
  return marked;
}

// A flush in flight may stamp the file between the program's call and our look at it: the program's
// time counts. Where the store keeps coarser times, its time counts. `given` is what the kernel got
// in the place of `asked`.
StoreStamp with_requested(StoreStamp stamp, const timespec* asked, const timespec* given) {
  constexpr std::int64_t kRounding = 2 * kNanosPerSecond;
  constexpr std::int64_t kMilli = 1'000'000;
  if (asked == nullptr || asked[1].tv_nsec == UTIME_NOW || asked[1].tv_nsec == UTIME_OMIT)
    return stamp;
  const std::int64_t requested = to_nanos(asked[1]);
  const std::int64_t off = stamp.mtime_ns - to_nanos(given[1]);
  const bool is_rounded = off < kRounding && off > -kRounding && stamp.mtime_ns % kMilli == 0;
  stamp.mtime_ns = is_rounded ? requested + off : requested;
  return stamp;
}

// `call(times)` asks the kernel, `look(&status)` reads the result; both return 0 or -errno. Under
// the object's lock, which keeps a settling of older times out.
template <typename Call, typename Look>
int set_object_times(Actor& actor, ObjectIndex index, const timespec* times, Call&& call,
                     Look&& look) {
  Object& object = actor.object(index);
  const OwnedGuard guard(object.lock, actor.self, actor.owners());
  timespec exact[2];
  const timespec* asked = with_our_now(object, actor.memory->stamp_clock(), times, exact);
  timespec marked[2];
  const timespec* given = while_unfinished(object, asked, marked);
  int result = call(given);
  // Any process that may write a file may set it to now, but only the owner to a time.
  if (result == -EPERM && asked != times) result = call(given = asked = times);
  CAIRN_DCHECK((given == nullptr) == (asked == nullptr));
  StoreStatus status;
  if (result != 0 || look(&status) < 0 || !(status.key == object.key())) return result;
  adopt_times(actor, index, with_requested(status.stamp, asked, given), sets_mtime(times));
  return 0;
}

// Two times of the application's, which the kernel looks at before anything else.
class GivenTimes {
 public:
  explicit GivenTimes(const timespec* given)
      : is_given_(given != nullptr),
        is_bad_(is_given_ && user_copy(times_, given, sizeof times_) != 0) {}
  bool is_bad() const { return is_bad_; }
  const timespec* get() const { return is_given_ ? times_ : nullptr; }

 private:
  timespec times_[2];
  bool is_given_;
  bool is_bad_;
};

int set_times(OpenFile& file, const timespec* given) {
  const GivenTimes copied(given);
  if (copied.is_bad()) return -EFAULT;
  const timespec* times = copied.get();
  const auto call = [&](const timespec* asked) {
    return static_cast<int>(sys::call(SYS_utimensat, file.private_fd(), 0, sys::word(asked), 0));
  };
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return call(times);
  return set_object_times(*actor, file.object, times, call,
                          [&](StoreStatus* status) { return file.backing->status(status); });
}

// Returns 0 or -errno.
int set_times_at(int directory, const char* path, const timespec* given, int flags) {
  const GivenTimes copied(given);
  if (copied.is_bad()) return -EFAULT;
  const timespec* times = copied.get();
  const auto call = [&](const timespec* asked) {
    return static_cast<int>(
        sys::call(SYS_utimensat, directory, sys::word(path), sys::word(asked), flags));
  };
  struct ::statx before;
  const int look_flags = flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
  Actor* actor = nullptr;
  ObjectIndex object = ObjectIndex::kNone;
  if (path != nullptr && may_need_overlay() &&
      sys::statx(directory, path, look_flags, kOverlayMask, &before) == 0) {
    object = object_of(before);
    actor = Session::instance().actor_if_any();
  }
  if (actor == nullptr || object == ObjectIndex::kNone) return call(times);
  return set_object_times(*actor, object, times, call, [&](StoreStatus* status) {
    return store_status_at(directory, path, look_flags, status);
  });
}

bool to_timespecs(const timeval* from, timespec* to) {
  if (from == nullptr) return true;
  for (int index = 0; index < 2; ++index) {
    if (from[index].tv_usec < 0 || from[index].tv_usec >= 1'000'000) return false;
    to[index] = timespec{from[index].tv_sec, from[index].tv_usec * 1000};
  }
  return true;
}

int set_times_at(int directory, const char* path, const timeval* times, int flags) {
  timespec converted[2];
  if (!to_timespecs(times, converted)) return -EINVAL;
  return set_times_at(directory, path, times == nullptr ? nullptr : converted, flags);
}

// By descriptor, with the old calls' times; `otherwise(real)` where the file is not buffered.
template <typename Otherwise>
int set_times_of(int fd, const timeval* times, Otherwise&& otherwise) {
  return with_open_file(fd, [&](OpenFile* file, int real) {
    if (file == nullptr) return otherwise(real);
    timespec converted[2];
    if (!to_timespecs(times, converted)) return with_errno(-EINVAL);
    return with_errno(set_times(*file, times == nullptr ? nullptr : converted));
  });
}

}  // namespace
}  // namespace cairn

using cairn::OpenFile;
using cairn::with_errno;
using cairn::with_open_file;

CAIRN_HOOK(int, utimensat, (int directory, const char* path, const timespec* times, int flags)) {
  char first = 0;
  const bool may_be_empty = path != nullptr && (flags & AT_EMPTY_PATH) != 0;
  if (may_be_empty && cairn::get_user(&first, path) && first == '\0') {
    return with_open_file(directory, [=](OpenFile* file, int real) {
      return with_errno(file != nullptr ? cairn::set_times(*file, times)
                                        : cairn::set_times_at(real, path, times, flags));
    });
  }
  if (path == nullptr) return cairn::real::utimensat(directory, path, times, flags);
  return with_errno(cairn::set_times_at(directory, path, times, flags));
}

CAIRN_HOOK(int, utimes, (const char* path, const timeval* times)) {
  return with_errno(cairn::set_times_at(AT_FDCWD, path, times, 0));
}
CAIRN_HOOK(int, lutimes, (const char* path, const timeval* times)) {
  return with_errno(cairn::set_times_at(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW));
}
CAIRN_HOOK(int, utime, (const char* path, const utimbuf* times)) {
  const timespec converted[2] = {{times != nullptr ? times->actime : 0, 0},
                                 {times != nullptr ? times->modtime : 0, 0}};
  return with_errno(cairn::set_times_at(AT_FDCWD, path, times != nullptr ? converted : nullptr, 0));
}

CAIRN_HOOK(int, futimens, (int fd, const timespec* times)) {
  return with_open_file(fd, [=](OpenFile* file, int real) {
    return file != nullptr ? with_errno(cairn::set_times(*file, times))
                           : cairn::real::futimens(real, times);
  });
}

CAIRN_HOOK(int, futimes, (int fd, const timeval* times)) {
  return cairn::set_times_of(fd, times,
                             [=](int real) { return cairn::real::futimes(real, times); });
}

CAIRN_HOOK(int, futimesat, (int directory, const char* path, const timeval* times)) {
  if (path != nullptr) return with_errno(cairn::set_times_at(directory, path, times, 0));
  return cairn::set_times_of(
      directory, times, [=](int real) { return cairn::real::futimesat(real, nullptr, times); });
}
