// SPDX-License-Identifier: Apache-2.0
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cstring>

#include "base/system_call.h"

namespace cairn {
namespace {

constexpr int kMode = 0600;

// How file systems and kernels say that they know no files without a name.
bool has_no_unnamed_files(int error) {
  return error == -EOPNOTSUPP || error == -EISDIR || error == -EINVAL || error == -ENOENT;
}

int unlink(const char* path) {
  return static_cast<int>(sys::call(SYS_unlinkat, AT_FDCWD, sys::word(path), 0));
}

bool look_at(int fd, struct statx* status) {
  constexpr unsigned kWanted = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_SIZE;
  return sys::statx(fd, "", AT_EMPTY_PATH, kWanted, status) == 0 && S_ISREG(status->stx_mode);
}

// An empty file of this user with `links` names.
bool is_fresh(int fd, unsigned links) {
  struct statx status{};
  return look_at(fd, &status) && status.stx_uid == sys::geteuid() && status.stx_nlink == links &&
         status.stx_size == 0;
}

}  // namespace

int open_and_unlink_file(const char* path, int flags) {
  unlink(path);
  const int fd = sys::openat(AT_FDCWD, path,
                             O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | flags, kMode);
  // A file system that has no direct I/O may say so when the name is there already.
  unlink(path);
  if (fd < 0) return fd;
  // Somebody who has linked or replaced it meanwhile has what is written to it.
  if (is_fresh(fd, 0)) return fd;
  sys::close(fd);
  return -EPERM;
}

int open_unnamed_file(const char* path, int flags) {
  const char* slash = std::strrchr(path, '/');
  char directory[PATH_MAX] = ".";
  if (slash != nullptr) {
    const std::size_t length = slash == path ? 1 : static_cast<std::size_t>(slash - path);
    if (length >= sizeof directory) return -ENAMETOOLONG;
    std::memcpy(directory, path, length);
    directory[length] = '\0';
  }
  const int fd =
      sys::openat(AT_FDCWD, directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | flags, kMode);
  return fd < 0 && has_no_unnamed_files(fd) ? open_and_unlink_file(path, flags) : fd;
}

int open_new_file(const char* path, mode_t mode) {
  unlink(path);
  const int fd =
      sys::openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0 || is_fresh(fd, 1)) return fd;
  sys::close(fd);
  return -EPERM;
}

bool is_written_by_user_alone(int fd) {
  struct statx status{};
  return look_at(fd, &status) && (status.stx_uid == sys::geteuid() || status.stx_uid == 0) &&
         (status.stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace cairn
