// SPDX-License-Identifier: Apache-2.0
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {
namespace {

constexpr mode_t kMode = 0600;
static_assert((kMode & (S_IRWXG | S_IRWXO)) == 0, "nobody but this user opens the file");

// How file systems and kernels say that they know no files without a name.
bool has_no_unnamed_files(int error) {
  return error == -EOPNOTSUPP || error == -EISDIR || error == -EINVAL || error == -ENOENT;
}

int unlink_at(int directory, const char* name) {
  return static_cast<int>(sys::call(SYS_unlinkat, directory, sys::word(name), 0));
}

bool look_at(int fd, struct statx* status) {
  constexpr unsigned kWanted =
      STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID | STATX_SIZE;
  return sys::statx(fd, "", AT_EMPTY_PATH, kWanted, status) == 0;
}

// An empty file of this user with `links` names that `mode` lets nobody else open.
bool is_fresh(int fd, unsigned links, mode_t mode) {
  struct statx status{};
  return look_at(fd, &status) && S_ISREG(status.stx_mode) && status.stx_uid == sys::geteuid() &&
         status.stx_nlink == links && status.stx_size == 0 &&
         (status.stx_mode & 07777U & ~mode) == 0;
}

// 64 random bits in hexadecimal digits, behind a dot. Empty when the kernel has none to give.
using RandomName = std::array<char, 24>;
RandomName random_name() {
  constexpr char kBegin[] = ".cairn-";
  constexpr char kDigits[] = "0123456789abcdef";
  static_assert(sizeof kBegin - 1 + 16 < sizeof(RandomName));
  RandomName name{};
  std::uint64_t bits = 0;
  if (sys::call(SYS_getrandom, sys::word(&bits), sizeof bits, 0) != sizeof bits) return name;
  char* end = name.data();
  for (const char* letter = kBegin; *letter != '\0'; ++letter) *end++ = *letter;
  for (unsigned digit = 0; digit < 16; ++digit) *end++ = kDigits[bits >> (4 * digit) & 15];
  CAIRN_CHECK(end < name.data() + name.size());
  return name;
}

// What lets everybody exchange the files of the directory, and what to do about it; empty: nothing.
std::string danger_of(const struct statx& status, const std::string& directory) {
  const bool is_open = (status.stx_mode & S_IWOTH) != 0 && (status.stx_mode & S_ISVTX) == 0;
  if (!is_open) return {};
  return "can be written by every user and has no sticky bit: run chmod o-w " + directory +
         " or chmod +t " + directory + ", or name a directory of your own";
}

}  // namespace

Result<int> open_safe_directory(const std::string& directory) {
  const int fd = sys::openat(AT_FDCWD, directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Status::from_errno(-fd, directory);
  struct statx status{};
  const bool is_seen = look_at(fd, &status);
  const std::string danger = is_seen ? danger_of(status, directory) : "cannot be looked at";
  if (danger.empty()) return fd;
  sys::close(fd);
  return Status(StatusCode::kDenied, directory + " " + danger);
}

Status check_safe_directory(const std::string& directory) {
  const Result<int> opened = open_safe_directory(directory);
  if (!opened) return opened.status();
  sys::close(*opened);
  return Status::ok();
}

int open_and_unlink_file(int directory, const char* name, int flags) {
  const int fd = sys::openat(directory, name,
                             O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | flags, kMode);
  // Something that lies there is not ours to remove.
  if (fd == -EEXIST) return fd;
  // A file system that has no direct I/O may say so when the name is there already.
  unlink_at(directory, name);
  if (fd < 0) return fd;
  // Somebody who has linked or replaced it meanwhile has what is written to it.
  if (is_fresh(fd, 0, kMode)) return fd;
  sys::close(fd);
  return -EPERM;
}

int open_unnamed_file(int directory, int flags) {
  // O_EXCL: it gets no name later either.
  const int fd =
      sys::openat(directory, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | flags, kMode);
  if (fd >= 0 || !has_no_unnamed_files(fd)) return fd;
  constexpr int kTries = 4;
  int error = -EEXIST;
  for (int at = 0; at < kTries && error == -EEXIST; ++at) {
    const RandomName name = random_name();
    if (name[0] == '\0') return -EAGAIN;
    error = open_and_unlink_file(directory, name.data(), flags);
  }
  return error;
}

int open_new_file(const char* path, mode_t mode) {
  unlink_at(AT_FDCWD, path);
  const int fd =
      sys::openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0 || is_fresh(fd, 1, mode)) return fd;
  sys::close(fd);
  return -EPERM;
}

bool is_written_by_user_alone(int fd) {
  struct statx status{};
  return look_at(fd, &status) && S_ISREG(status.stx_mode) &&
         (status.stx_uid == sys::geteuid() || status.stx_uid == 0) &&
         (status.stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace cairn
