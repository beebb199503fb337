// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/posix_backing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/descriptor_path.h"
#include "base/io_parts.h"
#include "base/system_call.h"

namespace cairn {
namespace {

std::int64_t to_nanos(const statx_timestamp& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

int store_status_at(int directory, const char* path, int flags, StoreStatus* status) {
  struct ::statx raw;
  const int error = sys::statx(directory, path, flags, STATX_BASIC_STATS | STATX_BTIME, &raw);
  if (error < 0) return error;
  const bool has_birth = (raw.stx_mask & STATX_BTIME) != 0;
  status->key = file_key(makedev(raw.stx_dev_major, raw.stx_dev_minor), raw.stx_ino,
                         has_birth ? to_nanos(raw.stx_btime) : 0);
  status->stamp.size = raw.stx_size;
  status->stamp.mtime_ns = to_nanos(raw.stx_mtime);
  status->stamp.ctime_ns = to_nanos(raw.stx_ctime);
  status->mode = raw.stx_mode;
  status->links = raw.stx_nlink;
  status->attributes = raw.stx_attributes;
  return 0;
}

int store_status(int fd, StoreStatus* status) {
  return store_status_at(fd, "", AT_EMPTY_PATH, status);
}

int known_store_status(int fd, StoreStatus* status) {
  return store_status_at(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, status);
}

bool StoreStatus::is_guarded() const {
  return (mode & (S_ISUID | S_ISGID)) != 0 ||
         (attributes & (STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE)) != 0;
}

bool PosixBacking::is_writable() const {
  return (flags_ & O_ACCMODE) != O_RDONLY && (flags_ & O_APPEND) == 0;
}

int PosixBacking::open_to_read(int fd) {
  return sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_RDONLY | O_CLOEXEC);
}

void PosixBacking::close_after_reading(int fd) { sys::close(fd); }

int PosixBacking::readable_fd() {
  if (descriptor_ < 0) return -EBADF;
  if ((flags_ & O_ACCMODE) != O_WRONLY) return descriptor_;
  const int known = extra_fd();
  if (known >= 0) return known;
  const int made = reading_.open(descriptor_);
  if (made < 0) return made == -EACCES || made == -EPERM ? -EBADF : made;
  CAIRN_DCHECK(made != descriptor_);
  int expected = -1;
  if (extra_fd_.compare_exchange_strong(expected, made)) return made;
  reading_.close(made);  // another thread was faster
  return expected;
}

ssize_t PosixBacking::read(std::uint64_t offset, void* buffer, std::size_t length) {
  const int fd = readable_fd();
  if (fd < 0) return fd;
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = sys::pread(fd, static_cast<char*>(buffer) + done, length - done,
                                   static_cast<off_t>(offset + done));
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    CAIRN_DCHECK(static_cast<std::size_t>(got) <= length - done);
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

ssize_t PosixBacking::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  return sys::pread(descriptor_, buffer, length, static_cast<off_t>(offset));
}

void PosixBacking::will_read(std::uint64_t offset, std::size_t length) {
  if (const int fd = readable_fd(); fd >= 0)
    (void)sys::call(SYS_fadvise64, fd, static_cast<long>(offset), static_cast<long>(length),
                    POSIX_FADV_WILLNEED);
}

ssize_t PosixBacking::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  const int fd = readable_fd();
  if (fd < 0) return fd;
  std::size_t done = 0;
  while (!parts.empty()) {
    const ssize_t got = sys::preadv(fd, parts.data(), static_cast<int>(parts.size()),
                                    static_cast<off_t>(offset + done));
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
    parts = parts_after(parts, static_cast<std::size_t>(got));
  }
  return static_cast<ssize_t>(done);
}

void PosixBacking::take_flags_back() const {
  constexpr int kHarmful = O_APPEND | O_DIRECT;
  if (__builtin_expect(!is_shared(), 1)) return;
  const int flags = sys::fcntl(descriptor_, F_GETFL);
  if (flags < 0 || (flags & kHarmful) == 0) return;
  sys::fcntl(descriptor_, F_SETFL, static_cast<long>(flags & ~kHarmful));
}

ssize_t PosixBacking::write(std::uint64_t offset, const void* buffer, std::size_t length) {
  take_flags_back();
  std::size_t done = 0;
  while (done < length) {
    const ssize_t put = sys::pwrite(descriptor_, static_cast<const char*>(buffer) + done,
                                    length - done, static_cast<off_t>(offset + done));
    if (put == -EINTR) continue;
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : put;
    if (put == 0) return done > 0 ? static_cast<ssize_t>(done) : -EIO;
    CAIRN_DCHECK(static_cast<std::size_t>(put) <= length - done);
    done += static_cast<std::size_t>(put);
  }
  return static_cast<ssize_t>(done);
}

ssize_t PosixBacking::write_once(std::uint64_t offset, std::span<const iovec> parts) {
  CAIRN_DCHECK(!parts.empty());
  take_flags_back();
  ssize_t put = 0;
  do {
    put = sys::pwritev(descriptor_, parts.data(), static_cast<int>(parts.size()),
                       static_cast<off_t>(offset));
  } while (put == -EINTR);
  return put == 0 ? -EIO : put;
}

// Only the description's offset tells where the end was; it may be the program's own.
ssize_t PosixBacking::append(const void* buffer, std::size_t length, std::uint64_t* offset) {
  const iovec part{const_cast<void*>(buffer), length};
  const off_t before = sys::lseek(descriptor_, 0, SEEK_CUR);
  ssize_t put = 0;
  do {
    put = sys::call(SYS_pwritev2, descriptor_, sys::word(&part), 1, -1, -1, RWF_APPEND);
  } while (put == -EINTR);
  const off_t end = sys::lseek(descriptor_, 0, SEEK_CUR);
  if (put > 0) *offset = static_cast<std::uint64_t>(end - put);
  sys::lseek(descriptor_, before, SEEK_SET);
  return put;
}

int PosixBacking::status(StoreStatus* status) { return store_status(descriptor_, status); }

int PosixBacking::truncate(std::uint64_t size) {
  const bool may_write = (flags_ & O_ACCMODE) != O_RDONLY;
  if (may_write || descriptor_ < 0) return sys::ftruncate(descriptor_, static_cast<off_t>(size));
  const int error = sys::truncate(DescriptorPath(descriptor_).text, static_cast<off_t>(size));
  if (error < 0) return error;
  // As ftruncate() stamps a file in any case, and a name not everywhere.
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  return sys::utimensat(descriptor_, nullptr, times, 0);
}

int PosixBacking::truncate_as_called(std::uint64_t size) {
  if (!is_called_by_name_.load(std::memory_order_relaxed)) return truncate(size);
  const int error = sys::truncate(DescriptorPath(descriptor_).text, static_cast<off_t>(size));
  // For want of /proc, that is.
  return error == -ENOENT || error == -EACCES ? truncate(size) : error;
}

int PosixBacking::allocate(int mode, std::uint64_t offset, std::uint64_t length) {
  return sys::fallocate(descriptor_, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
}

int PosixBacking::sync(SyncDepth depth) {
  if (depth == SyncDepth::kAll) return sys::fsync(descriptor_);
  return sys::fdatasync(descriptor_);
}

int PosixBacking::set_mtime(std::int64_t mtime_ns) {
  const timespec times[2] = {{0, UTIME_OMIT}, to_timespec(mtime_ns)};
  return sys::utimensat(descriptor_, nullptr, times, 0);
}

void PosixBacking::close_extra() {
  const int extra = extra_fd_.exchange(-1);
  if (extra >= 0) reading_.close(extra);
}

}  // namespace cairn
