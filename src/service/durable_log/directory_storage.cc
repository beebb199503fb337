// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/directory_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace cairn::durable {

namespace {

class DirectoryFile final : public LogFile {
 public:
  explicit DirectoryFile(int fd) : fd_(fd) { CAIRN_CHECK(fd >= 0); }
  ~DirectoryFile() override { ::close(fd_); }

  std::int64_t size() override {
    struct stat status{};
    return ::fstat(fd_, &status) == 0 ? status.st_size : -errno;
  }

  std::int64_t read(std::span<std::byte> out, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got =
          ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return -errno;
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return static_cast<std::int64_t>(done);
  }

  void read_ahead(std::uint64_t offset, std::uint64_t bytes) override {
    ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    POSIX_FADV_WILLNEED);
  }

  void let_go() override { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }

  int write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t put = ::pwrite(fd_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(offset + done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return -errno;
      if (put == 0) return -EIO;
      done += static_cast<std::size_t>(put);
    }
    return 0;
  }

  int flush() override { return ::fdatasync(fd_) == 0 ? 0 : -errno; }
  // The kernel closes the files of a killed process a little after its end, if an operation of its
  // io_uring was under way.
  int lock() override {
    constexpr int kLooksMax = 200;
    constexpr timespec kPause{0, 10'000'000};
    for (int look = 1;; ++look) {
      if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return 0;
      if (errno != EWOULDBLOCK || look == kLooksMax) return -errno;
      ::nanosleep(&kPause, nullptr);
    }
  }

 private:
  int fd_;
};

class DirectoryStorage final : public LogStorage {
 public:
  DirectoryStorage(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
    CAIRN_CHECK(fd >= 0);
  }
  ~DirectoryStorage() override { ::close(fd_); }

  std::string where() const override { return path_; }

  Result<std::vector<std::string>> names() override {
    const int again = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = again < 0 ? nullptr : ::fdopendir(again);
    if (stream == nullptr) {
      const int error = errno;
      if (again >= 0) ::close(again);
      return Status::from_errno(error, path_);
    }
    std::vector<std::string> found;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") found.push_back(name);
    }
    const int error = errno;
    ::closedir(stream);
    if (error != 0) return Status::from_errno(error, path_);
    return found;
  }

  Result<std::unique_ptr<LogFile>> open(const std::string& name, OpenHow how) override {
    if (how == OpenHow::kCreate) ::unlinkat(fd_, name.c_str(), 0);
    const int flags = how == OpenHow::kRead    ? O_RDONLY
                      : how == OpenHow::kWrite ? O_RDWR
                                               : O_RDWR | O_CREAT | O_EXCL;
    const int fd = ::openat(fd_, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
      if (errno == ENOENT) return Status(StatusCode::kNotFound, path_ + "/" + name, ENOENT);
      return Status::from_errno(errno, path_ + "/" + name);
    }
    struct stat status{};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd);
      return Status(StatusCode::kDenied, path_ + "/" + name + " is not a regular file", EPERM);
    }
    return std::unique_ptr<LogFile>(std::make_unique<DirectoryFile>(fd));
  }

  int rename(const std::string& from, const std::string& to) override {
    return ::renameat(fd_, from.c_str(), fd_, to.c_str()) == 0 ? 0 : -errno;
  }
  int remove(const std::string& name) override {
    return ::unlinkat(fd_, name.c_str(), 0) == 0 ? 0 : -errno;
  }
  int sync_folder() override { return ::fsync(fd_) == 0 ? 0 : -errno; }

 private:
  std::string path_;
  int fd_;
};

// A folder that another user may change is none for bytes that the service will write to files.
Status check_owner(int fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return Status::from_errno(errno, path);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return {StatusCode::kDenied,
            path +
                " belongs to another user, or others may write to it; run the command as its"
                " owner (not as root: its content would decide what root writes), or use another"
                " directory",
            EPERM};
  }
  return Status::ok();
}

}  // namespace

std::string log_folder_of(const std::string& tier_directory) {
  std::string path = tier_directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string ending = std::string("/") + kLogFolder;
  if (path == kLogFolder || path.ends_with(ending)) return path;
  return path + ending;
}

Result<std::unique_ptr<LogStorage>> open_directory_storage(const std::string& tier_directory,
                                                           FolderWanted wanted) {
  const std::string path = log_folder_of(tier_directory);
  if (wanted == FolderWanted::kMade && ::mkdir(path.c_str(), 0700) == 0) {
    // The folder's own name has to survive as well.
    const int parent = ::open((path + "/..").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || ::fsync(parent) != 0) {
      const int error = errno;
      if (parent >= 0) ::close(parent);
      return Status::from_errno(error, tier_directory);
    }
    ::close(parent);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT) return Status(StatusCode::kNotFound, "no durable tier at " + path, ENOENT);
    return Status::from_errno(errno, path);
  }
  auto storage = std::make_unique<DirectoryStorage>(path, fd);
  CAIRN_RETURN_IF_ERROR(check_owner(fd, path));
  return std::unique_ptr<LogStorage>(std::move(storage));
}

}  // namespace cairn::durable
