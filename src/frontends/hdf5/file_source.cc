// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/file_source.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "frontends/hdf5/regions.h"

namespace cairn::hdf5 {
namespace {

// Held for a few instructions.
class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) ::sched_yield();
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

// Never destroyed, because HDF5 calls from its exit handler.
struct Writables {
  // More files at a time are not told apart.
  static constexpr std::size_t kKnownMax = 64;

  std::atomic_flag lock;
  std::array<FileIdentity, kKnownMax> known{};
  std::size_t count = 0;
  std::size_t unknown = 0;
};

Writables& writables() {
  static auto& all = *new Writables;
  return all;
}

FileIdentity identity_in(const struct stat& status) {
  return {status.st_dev, status.st_ino, S_ISREG(status.st_mode)};
}

}  // namespace

FileIdentity identity_of(const char* name) {
  struct stat status{};
  return ::stat(name, &status) == 0 ? identity_in(status) : FileIdentity();
}

FileSource::FileSource(FileSource&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      version_(other.version_),
      identity_(other.identity_) {}

FileSource& FileSource::operator=(FileSource&& other) noexcept {
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  version_ = other.version_;
  identity_ = other.identity_;
  return *this;
}

FileSource FileSource::open(const char* name) {
  FileSource source;
  const RegionCalls* calls = region_calls();
  if (calls == nullptr) return source;
  source.descriptor_ = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!source.is_open()) return source;
  struct stat status{};
  if (::fstat(source.descriptor_, &status) == 0) source.identity_ = identity_in(status);
  const bool is_buffered =
      source.identity_.is_known && calls->version(source.descriptor_, &source.version_) == 0;
  if (!is_buffered) source.close();
  return source;
}

void FileSource::confirm(const char* name) {
  if (is_open() && identity_of(name) != identity_) close();
}

void FileSource::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

WritableFile::WritableFile(const FileIdentity& identity) : identity_(identity), is_counted_(true) {
  Writables& all = writables();
  const SpinLock lock(all.lock);
  if (identity.is_known && all.count < Writables::kKnownMax) {
    all.known[all.count++] = identity;
  } else {
    identity_.is_known = false;
    ++all.unknown;
  }
}

WritableFile::WritableFile(WritableFile&& other) noexcept
    : identity_(other.identity_), is_counted_(std::exchange(other.is_counted_, false)) {}

WritableFile::~WritableFile() {
  if (!is_counted_) return;
  Writables& all = writables();
  const SpinLock lock(all.lock);
  if (!identity_.is_known) {
    CAIRN_DCHECK(all.unknown > 0);
    --all.unknown;
    return;
  }
  for (std::size_t at = 0; at < all.count; ++at) {
    if (all.known[at] != identity_) continue;
    all.known[at] = all.known[--all.count];
    return;
  }
}

bool WritableFile::is_any(const FileIdentity& identity) {
  Writables& all = writables();
  const SpinLock lock(all.lock);
  if (all.unknown != 0) return true;
  for (std::size_t at = 0; at < all.count; ++at) {
    if (all.known[at] == identity) return true;
  }
  return false;
}

}  // namespace cairn::hdf5
