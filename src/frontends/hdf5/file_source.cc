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
#include "base/clock.h"
#include "base/settled_times.h"
#include "frontends/hdf5/regions.h"
#include "frontends/hdf5/silent_errors.h"

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

bool is_descriptor_of(int descriptor, const FileIdentity& identity) {
  struct stat status{};
  return descriptor >= 0 && ::fstat(descriptor, &status) == 0 && identity_in(status) == identity;
}

}  // namespace

FileLook FileLook::by_name(const char* name) {
  FileLook look;
  struct stat status{};
  const std::int64_t began_ns = wall_clock_ns();
  if (::stat(name, &status) != 0) return look;
  look.identity = identity_in(status);
  const std::int64_t mtime_ns = to_nanos(status.st_mtim);
  const std::int64_t ctime_ns = to_nanos(status.st_ctim);
  look.version = {static_cast<std::uint64_t>(status.st_size), mtime_ns, ctime_ns, 0,
                  have_settled(mtime_ns, ctime_ns, began_ns) ? 0U : 1U};
  return look;
}

bool FileLook::is_of(CairnFileVersion* opened) const {
  if (opened->size != version.size || opened->mtime_ns != version.mtime_ns ||
      opened->ctime_ns != version.ctime_ns)
    return false;
  // HDF5 has read some of the file since the look, and may have taken its time.
  opened->is_fresh |= version.is_fresh;
  return true;
}

unsigned long LowerFile::number() const {
  H5VL_loc_params_t itself = {};
  itself.obj_type = H5I_FILE;
  itself.type = H5VL_OBJECT_BY_SELF;
  H5O_info2_t info = {};
  H5VL_object_get_args_t question = {};
  question.op_type = H5VL_OBJECT_GET_INFO;
  question.args.get_info = {.fields = H5O_INFO_BASIC, .oinfo = &info};
  const bool is_told =
      library.call.H5VLobject_get(file, &itself, connector, &question, transfer, nullptr) >= 0;
  return is_told ? info.fileno : 0;
}

int LowerFile::descriptor() const {
  void* handle = nullptr;
  H5VL_native_file_optional_args_t native = {};
  native.get_vfd_handle = {.fapl_id = H5P_DEFAULT, .file_handle = &handle};
  H5VL_optional_args_t question = {.op_type = H5VL_NATIVE_FILE_GET_VFD_HANDLE, .args = &native};
  // Some drivers have no handles at all.
  const SilentErrors silent(library);
  const bool is_told =
      library.call.H5VLfile_optional(file, connector, &question, transfer, nullptr) >= 0;
  return is_told && handle != nullptr ? *static_cast<const int*>(handle) : -1;
}

int LowerFile::descriptor_of(const FileIdentity& identity) const {
  const int found = identity.is_known ? descriptor() : -1;
  return is_descriptor_of(found, identity) ? found : -1;
}

FileSource FileSource::of(int descriptor, const FileLook& before) {
  FileSource source;
  const RegionCalls* calls = region_calls();
  if (calls == nullptr || descriptor < 0) return source;
  if (calls->version(descriptor, &source.version) != 0 || !before.is_of(&source.version))
    return source;
  source.descriptor = descriptor;
  source.identity = before.identity;
  return source;
}

OwnDescriptor::OwnDescriptor(const char* name, const FileIdentity& identity) {
  if (!identity.is_known) return;
  descriptor_ = ::open(name, O_RDONLY | O_CLOEXEC);
  if (!is_descriptor_of(descriptor_, identity)) *this = {};
}

OwnDescriptor::OwnDescriptor(OwnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

OwnDescriptor& OwnDescriptor::operator=(OwnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OwnDescriptor::~OwnDescriptor() {
  if (descriptor_ >= 0) (void)::close(descriptor_);
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
