// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/backing_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
  status->key.device = makedev(raw.stx_dev_major, raw.stx_dev_minor);
  status->key.inode = raw.stx_ino;
  status->key.birth_ns = (raw.stx_mask & STATX_BTIME) != 0 ? to_nanos(raw.stx_btime) : 0;
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

bool StoreStatus::is_guarded() const {
  return (mode & (S_ISUID | S_ISGID)) != 0 ||
         (attributes & (STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE)) != 0;
}

bool BackingFile::is_writable() const {
  return (flags_ & O_ACCMODE) != O_RDONLY && (flags_ & O_APPEND) == 0;
}

int BackingFile::readable_fd() {
  if ((flags_ & O_ACCMODE) != O_WRONLY) return fd_;
  const int known = extra_fd_.load(std::memory_order_acquire);
  if (known >= 0) return known;
  const int low = sys::openat(AT_FDCWD, DescriptorPath(fd_).text, O_RDONLY | O_CLOEXEC);
  if (low < 0) return low == -EACCES || low == -EPERM ? -EBADF : low;
  // The low number stays the application's; a dup lives near the private descriptor.
  int high = low;
  if (!keeps_first_.load(std::memory_order_relaxed)) {
    high = sys::fcntl(low, F_DUPFD_CLOEXEC, fd_);
    if (high < 0) high = sys::fcntl(low, F_DUPFD_CLOEXEC, 3);
    sys::close(low);
  }
  if (high < 0) return high;
  int expected = -1;
  if (!extra_fd_.compare_exchange_strong(expected, high)) {
    sys::close(high);
    return expected;
  }
  return high;
}

ssize_t BackingFile::read(std::uint64_t offset, void* buffer, std::size_t length) {
  const int fd = readable_fd();
  if (fd < 0) return fd;
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = sys::pread(fd, static_cast<char*>(buffer) + done, length - done,
                                   static_cast<off_t>(offset + done));
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

ssize_t BackingFile::read_parts(std::uint64_t offset, std::span<iovec> parts) {
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

ssize_t BackingFile::write(std::uint64_t offset, const void* buffer, std::size_t length) const {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t put = sys::pwrite(fd_, static_cast<const char*>(buffer) + done, length - done,
                                    static_cast<off_t>(offset + done));
    if (put == -EINTR) continue;
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : put;
    if (put == 0) return done > 0 ? static_cast<ssize_t>(done) : -EIO;
    done += static_cast<std::size_t>(put);
  }
  return static_cast<ssize_t>(done);
}

// Only the description's offset tells where the end was; it may be the program's own.
ssize_t BackingFile::append(const void* buffer, std::size_t length, std::uint64_t* offset) const {
  const iovec part{const_cast<void*>(buffer), length};
  const off_t before = sys::lseek(fd_, 0, SEEK_CUR);
  ssize_t put = 0;
  do {
    put = sys::call(SYS_pwritev2, fd_, sys::word(&part), 1, -1, -1, RWF_APPEND);
  } while (put == -EINTR);
  const off_t end = sys::lseek(fd_, 0, SEEK_CUR);
  if (put > 0) *offset = static_cast<std::uint64_t>(end - put);
  sys::lseek(fd_, before, SEEK_SET);
  return put;
}

int BackingFile::status(StoreStatus* status) const { return store_status(fd_, status); }

int BackingFile::truncate(std::uint64_t size) const {
  return sys::ftruncate(fd_, static_cast<off_t>(size));
}

int BackingFile::truncate_as_called(std::uint64_t size) const {
  if (!is_called_by_name_) return truncate(size);
  const int error = sys::truncate(DescriptorPath(fd_).text, static_cast<off_t>(size));
  // For want of /proc, that is.
  return error == -ENOENT || error == -EACCES ? truncate(size) : error;
}

int BackingFile::set_mtime(std::int64_t mtime_ns) const {
  const timespec times[2] = {{0, UTIME_OMIT}, to_timespec(mtime_ns)};
  return sys::utimensat(fd_, nullptr, times, 0);
}

void BackingFile::close_extra() {
  const int extra = extra_fd_.exchange(-1);
  if (extra >= 0) sys::close(extra);
}

}  // namespace cairn
