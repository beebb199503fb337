// SPDX-License-Identifier: Apache-2.0
#include "service/replay/saved_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace cairn::durable {

namespace {

constexpr const char* kPassingEnding = ".cairn-recovering";
constexpr std::size_t kNameBytesMax = 255;
constexpr int kNamesTried = 1000;

// A name that has room for an ending of `bytes`.
std::string shortened(const std::string& name, std::size_t bytes) {
  CAIRN_CHECK(bytes < kNameBytesMax);
  return name.size() + bytes <= kNameBytesMax ? name : name.substr(0, kNameBytesMax - bytes);
}

int copy_base(int from, int to, std::uint64_t limit) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < limit;) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), limit - at);
    const ssize_t got = ::pread(from, buffer.data(), wanted, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    const ssize_t put =
        ::pwrite(to, buffer.data(), static_cast<std::size_t>(got), static_cast<off_t>(at));
    if (put < 0) return errno;
    if (put == 0) return EIO;
    at += static_cast<std::uint64_t>(put);
  }
  return 0;
}

// The name for the file that is open as `fd`: one that is free, or one of the same content.
int publish(int folder, int fd, const std::string& passing, const CopyOrder& order,
            std::string* name) {
  if (order.when_taken == WhenTaken::kReplace) {
    *name = order.name;
    return ::renameat(folder, passing.c_str(), folder, name->c_str()) == 0 ? 0 : errno;
  }
  for (int turn = 1; turn <= kNamesTried; ++turn) {
    const std::string ending = turn == 1 ? "" : "." + std::to_string(turn);
    *name = shortened(order.name, ending.size()) + ending;
    if (::renameat2(folder, passing.c_str(), folder, name->c_str(), RENAME_NOREPLACE) == 0) {
      return 0;
    }
    int error = errno;
    // Some network file systems know no such rename.
    if (error == EINVAL || error == ENOSYS) {
      error = ::linkat(folder, passing.c_str(), folder, name->c_str(), 0) == 0 ? 0 : errno;
      if (error == 0) return ::unlinkat(folder, passing.c_str(), 0) == 0 ? 0 : errno;
    }
    if (error != EEXIST) return error;
    const int there =
        ::openat(folder, name->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_same = there >= 0 && has_same_bytes(there, fd);
    if (there >= 0) ::close(there);
    if (is_same) return ::unlinkat(folder, passing.c_str(), 0) == 0 ? 0 : errno;
    if (order.when_taken == WhenTaken::kFail) return EEXIST;
  }
  return EEXIST;
}

int fill(ExtentCopy& extents, const PendingFile& file, const CopyOrder& order, int fd,
         CopyResult* result) {
  const std::uint64_t size = file.state.size;
  int error = order.base < 0 ? 0 : copy_base(order.base, fd, std::min(size, file.cut_to));
  if (error != 0) return error;
  *result = extents.run(file, fd);
  error = std::max(result->error, result->log_error);
  if (error == 0 && ::ftruncate(fd, static_cast<off_t>(size)) != 0) error = errno;
  if (error == 0) error = set_mtime(fd, file.state.mtime_ns);
  if (error == 0 && order.owner) give_to(fd, *order.owner);
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  return error;
}

}  // namespace

bool has_same_bytes(int left, int right) {
  struct stat status_left{};
  struct stat status_right{};
  if (::fstat(left, &status_left) != 0 || ::fstat(right, &status_right) != 0) return false;
  if (!S_ISREG(status_left.st_mode) || status_left.st_size != status_right.st_size) return false;
  std::vector<char> bytes_left(std::size_t{1} << 20);
  std::vector<char> bytes_right(bytes_left.size());
  for (off_t at = 0; at < status_left.st_size;) {
    const ssize_t got_left = ::pread(left, bytes_left.data(), bytes_left.size(), at);
    const ssize_t got_right = ::pread(right, bytes_right.data(), bytes_right.size(), at);
    if (got_left <= 0 || got_left != got_right) return false;
    if (std::memcmp(bytes_left.data(), bytes_right.data(), static_cast<std::size_t>(got_left)) != 0)
      return false;
    at += got_left;
  }
  return true;
}

int set_mtime(int fd, std::int64_t mtime_ns) {
  std::array<timespec, 2> times{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = mtime_ns / kSecondNs - (mtime_ns % kSecondNs < 0 ? 1 : 0);
  times[1].tv_nsec = mtime_ns - times[1].tv_sec * kSecondNs;
  CAIRN_CHECK(times[1].tv_nsec >= 0 && times[1].tv_nsec < kSecondNs);
  return ::futimens(fd, times.data()) == 0 ? 0 : errno;
}

void give_to(int fd, const FileOwner& owner) {
  struct stat status{};
  const bool is_known = ::fstat(fd, &status) == 0;
  const bool is_theirs = is_known && status.st_uid == owner.user && status.st_gid == owner.group;
  if (!is_theirs && ::fchown(fd, owner.user, owner.group) != 0) return;
  (void)::fchmod(fd, owner.mode);
}

int sync_folder_of(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

SavedCopy save_copy(ExtentCopy& extents, const PendingFile& file, const CopyOrder& order) {
  SavedCopy saved;
  const int folder = ::open(order.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    saved.error = errno;
    return saved;
  }
  const std::string passing =
      shortened("." + order.name, std::strlen(kPassingEnding)) + kPassingEnding;
  ::unlinkat(folder, passing.c_str(), 0);
  const int fd =
      ::openat(folder, passing.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  saved.error = fd < 0 ? errno : fill(extents, file, order, fd, &saved.copy);
  std::string name;
  if (saved.error == 0) saved.error = publish(folder, fd, passing, order, &name);
  if (saved.error != 0 && fd >= 0) ::unlinkat(folder, passing.c_str(), 0);
  if (fd >= 0) ::close(fd);
  if (saved.error == 0 && ::fsync(folder) != 0) saved.error = errno;
  ::close(folder);
  saved.path = order.folder + (order.folder == "/" ? "" : "/") + name;
  return saved;
}

}  // namespace cairn::durable
