// SPDX-License-Identifier: Apache-2.0
#include "frontends/paths/visible_status.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/session.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

std::int64_t nanos_of(const statx_timestamp& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

void set_time(statx_timestamp& time, std::int64_t nanos) {
  const timespec converted = to_timespec(nanos);
  time.tv_sec = converted.tv_sec;
  time.tv_nsec = static_cast<std::uint32_t>(converted.tv_nsec);
}

timespec to_time(const statx_timestamp& time) {
  return timespec{static_cast<time_t>(time.tv_sec), static_cast<long>(time.tv_nsec)};
}

// False when the kernel's answer may be older than the object's: a reclaim or a store came between
// the answer and the look here. A second answer of the kernel is right.
bool overlay(struct ::statx& status, const StoreStamp& stamp, const ObjectKey& key,
             ObjectIndex index) {
  CAIRN_DCHECK(index != ObjectIndex::kNone && S_ISREG(status.stx_mode));
  const Object& object = Session::instance().memory().objects().at(index);
  const VisibleStamp visible = visible_stamp(object, stamp);
  if (!object.is_of(key) || !object.has(kObjectLive)) return false;
  const bool is_kernels = visible.size == stamp.size && visible.mtime_ns == stamp.mtime_ns;
  const bool agrees = object.store_size.load(std::memory_order_acquire) == stamp.size &&
                      object.store_mtime_ns.load(std::memory_order_acquire) == stamp.mtime_ns;
  // While the file is the kernel's it may know better; but what lies behind the object was perhaps
  // asked for before that began.
  const bool is_through = object.through.load(std::memory_order_acquire) != 0 &&
                          visible.size >= object.size.load(std::memory_order_acquire) &&
                          visible.mtime_ns >= object.mtime_ns.load(std::memory_order_acquire);
  status.stx_size = visible.size;
  status.stx_blocks += visible.extra_blocks_512;
  if (visible.mtime_ns != stamp.mtime_ns) set_time(status.stx_mtime, visible.mtime_ns);
  if (visible.ctime_ns != stamp.ctime_ns) set_time(status.stx_ctime, visible.ctime_ns);
  return is_through || agrees || !is_kernels;
}

void to_stat(const struct ::statx& from, struct ::stat* to) {
  *to = {};
  to->st_dev = makedev(from.stx_dev_major, from.stx_dev_minor);
  to->st_ino = from.stx_ino;
  to->st_mode = from.stx_mode;
  to->st_nlink = from.stx_nlink;
  to->st_uid = from.stx_uid;
  to->st_gid = from.stx_gid;
  to->st_rdev = makedev(from.stx_rdev_major, from.stx_rdev_minor);
  to->st_size = static_cast<off_t>(from.stx_size);
  to->st_blksize = static_cast<blksize_t>(from.stx_blksize);
  to->st_blocks = static_cast<blkcnt_t>(from.stx_blocks);
  to->st_atim = to_time(from.stx_atime);
  to->st_mtim = to_time(from.stx_mtime);
  to->st_ctim = to_time(from.stx_ctime);
}

}  // namespace

ObjectKey key_of(const struct ::statx& status) {
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
  return file_key(makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino,
                  has_birth ? nanos_of(status.stx_btime) : 0);
}

StoreStamp stamp_of(const struct ::statx& status) {
  return StoreStamp{status.stx_size, nanos_of(status.stx_mtime), nanos_of(status.stx_ctime)};
}

bool may_need_overlay() {
  // A forked child attaches here, if it has not: its parent and others may have buffered the file
  // in question.
  Session& session = Session::instance();
  const bool is_served = session.is_attached() || (session.is_configured() && session.attach());
  return is_served && session.memory().objects().live_count() > 0;
}

ObjectIndex object_of(const struct ::statx& status) {
  if (!S_ISREG(status.stx_mode) || !may_need_overlay()) return ObjectIndex::kNone;
  return Session::instance().memory().objects().find(key_of(status));
}

namespace {

// `result` is ours.
int visible_statx_of(int directory, const char* path, int flags, unsigned mask,
                     struct ::statx* result) {
  if (!may_need_overlay()) return sys::statx(directory, path, flags, mask, result);
  const ObjectTable& objects = Session::instance().memory().objects();
  for (int attempt = 0;; ++attempt) {
    const std::uint32_t live = objects.live_count();
    const int error = sys::statx(directory, path, flags, mask | kOverlayMask, result);
    if (error < 0 || !S_ISREG(result->stx_mode)) return error;
    const StoreStamp stamp = stamp_of(*result);
    Session::instance().memory().stamp_clock().note(std::max(stamp.mtime_ns, stamp.ctime_ns));
    const ObjectKey key = key_of(*result);
    const ObjectIndex index = objects.find(key);
    // The object may have settled and gone between the kernel's answer and the look here: then that
    // answer is old.
    const bool is_done = index != ObjectIndex::kNone ? overlay(*result, stamp, key, index)
                                                     : objects.live_count() >= live;
    if (is_done || attempt == 3) return 0;
  }
}

}  // namespace

int visible_statx(int directory, const char* path, int flags, unsigned mask,
                  struct ::statx* result) {
  struct ::statx status;
  const int error = visible_statx_of(directory, path, flags, mask, &status);
  if (error < 0) return error;
  return put_user(result, status) ? 0 : -EFAULT;
}

int visible_stat(int directory, const char* path, int flags, struct ::stat* result) {
  struct ::statx status;
  struct ::stat converted;
  const int error =
      visible_statx_of(directory, path, flags | AT_NO_AUTOMOUNT, kOverlayMask, &status);
  if (error < 0) return error;
  to_stat(status, &converted);
  return put_user(result, converted) ? 0 : -EFAULT;
}

}  // namespace cairn
