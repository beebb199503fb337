// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/test_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"

namespace cairn::profiler {
namespace {

// How file systems and kernels say that they know no unnamed files.
bool has_no_unnamed_files(int error_number) {
  return error_number == EOPNOTSUPP || error_number == EISDIR || error_number == EINVAL ||
         error_number == ENOENT || error_number == ENOSYS;
}

// ext4 takes all the room that there is before it says that there is not enough, and other writers
// of the file system then fail as well. So the room is checked beforehand.
bool has_room(int descriptor, uint64_t bytes) {
  struct statvfs space{};
  if (::fstatvfs(descriptor, &space) != 0 || space.f_blocks == 0) return true;  // it does not say
  return uint64_t{space.f_bavail} * space.f_frsize > bytes;
}

}  // namespace

TestFile::TestFile(TestFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), direct_(other.direct_) {}

TestFile& TestFile::operator=(TestFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(direct_, other.direct_);
  return *this;
}

TestFile::~TestFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<TestFile> TestFile::create(const std::string& directory, uint64_t bytes) {
  TestFile file;
  CAIRN_RETURN_IF_ERROR(file.open_unnamed(directory));
  if (!has_room(file.descriptor_, bytes)) return Status::from_errno(ENOSPC, directory);
  if (::fallocate(file.descriptor_, 0, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EIO)) {
    return Status::from_errno(errno, directory);
  }
  const int flags = ::fcntl(file.descriptor_, F_GETFL);
  file.direct_ = ::fcntl(file.descriptor_, F_SETFL, flags | O_DIRECT) == 0;
  if (!file.direct_) CAIRN_RETURN_IF_ERROR(file.give_up_direct());
  return file;
}

Status TestFile::open_unnamed(const std::string& directory) {
  descriptor_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return Status::ok();
  if (has_no_unnamed_files(errno)) return open_and_remove(directory);
  return Status::from_errno(errno, directory);
}

Status TestFile::open_and_remove(const std::string& directory) {
  std::string path = directory + "/.cairn-profile-XXXXXX";
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  const int error_number = errno;
  if (descriptor_ >= 0) ::unlink(path.c_str());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (descriptor_ >= 0) return Status::ok();
  // The directory is there, but it is none of a file system that holds data (/proc, autofs).
  if (has_no_unnamed_files(error_number)) {
    return {StatusCode::kInvalid, directory + ": takes no files"};
  }
  return Status::from_errno(error_number, directory);
}

Status TestFile::give_up_direct() {
  direct_ = false;
  // O_DSYNC cannot be set on an open file; the link in /proc opens one without a name once more.
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor_);
  const int synchronous = ::open(link.c_str(), O_RDWR | O_DSYNC | O_CLOEXEC);
  if (synchronous < 0) return Status::from_errno(errno, "opening the test file once more");
  ::close(descriptor_);
  descriptor_ = synchronous;
  return Status::ok();
}

Result<double> TestFile::flush() {
  const int64_t start_ns = monotonic_ns();
  if (::fdatasync(descriptor_) != 0) return Status::from_errno(errno, "storing the test file");
  return static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
}

void TestFile::drop_cache() {
  if (!direct_) ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace cairn::profiler
