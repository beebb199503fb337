// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "memory/backing/posix_backing.h"
#include "service/process/block_device.h"
#include "service/profiler/directory_state.h"

namespace cairn::node {
namespace {

// Up to this many files are synced one by one; more are cheaper in one syncfs, which also waits for
// others' data.
constexpr std::size_t kFsyncsMax = 64;
constexpr std::size_t kClosedMax = 64;

bool is_unstored(const Object& object) {
  return object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty);
}

bool is_in_use(const Object& object) { return object.opens.load() != 0 || is_unstored(object); }

bool may_be_written(const Object& object) {
  return object.writers.load() != 0 || is_unstored(object);
}

// A file that nobody can find any more has nothing to make durable.
bool is_deleted(const StoreFile& file) {
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0;
}

// A regular file with that key, by what the kernel knows, or else by what the store says.
bool is_file_of(int fd, const ObjectKey& key, StoreStatus* status) {
  const bool is_known = known_store_status(fd, status) == 0 && status->key == key;
  if (!is_known && (store_status(fd, status) != 0 || status->key != key)) return false;
  return S_ISREG(status->mode);
}

UniqueFd reopen(int fd, int access_mode) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return UniqueFd(::open(link, access_mode | O_CLOEXEC));
}

}  // namespace

UniqueFd with_own_description(UniqueFd fd) {
  UniqueFd own = reopen(fd.get(), O_WRONLY);
  return own ? std::move(own) : std::move(fd);
}

bool renew_descriptor(const StoreFile& file, const ObjectKey& key) {
  const int number = file.fd.get();
  const UniqueFd opened(
      ::open(path_of_descriptor(number).c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  StoreStatus found;
  if (!opened || store_status(opened.get(), &found) != 0 || found.key != key) return false;
  // Threads that are storing through the number do not notice.
  return ::dup3(opened.get(), number, O_CLOEXEC) == number;
}

std::string path_of_descriptor(int fd) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length))
                    : std::string("(unknown)");
}

std::string path_of_descriptor(pid_t pid, int fd) {
  char link[48];
  std::snprintf(link, sizeof link, "/proc/%d/fd/%d", static_cast<int>(pid), fd);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

// The nearest directory above the file that is on its device and that can be opened. The file
// itself would keep its room for good once it is deleted: it is taken only where there is no other.
UniqueFd directory_above(int fd, dev_t device) {
  std::string path = path_of_descriptor(fd);
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end != 0;
       end = path.rfind('/')) {
    path.erase(end);
    UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status{};
    if (directory && ::fstat(directory.get(), &status) == 0 && status.st_dev == device)
      return directory;
  }
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

StoreFiles::Device& StoreFiles::device_of(dev_t device, int fd) {
  const auto [entry, created] = devices_.try_emplace(device);
  if (created) {
    entry->second.rotational = is_rotational(device);
    entry->second.remote = profiler::is_on_network(fd);
    entry->second.in_user_space = profiler::is_in_user_space(fd);
    entry->second.place = std::make_shared<SyncPlace>(directory_above(fd, device));
  }
  return entry->second;
}

bool StoreFiles::insert(ObjectIndex index, UniqueFd fd, FileRoom room, std::uint32_t run) {
  if (raw(index) == 0 || raw(index) >= memory_.objects().capacity()) return false;
  const Object& object = memory_.objects().at(index);
  StoreStatus store;
  if (!is_file_of(fd.get(), object.key(), &store)) return false;
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) return false;
  // An appending descriptor would put every pwrite at the end of the file (pwrite(2), BUGS), and a
  // direct one takes whole sectors only.
  if ((flags & (O_APPEND | O_DIRECT)) != 0) {
    fd = reopen(fd.get(), O_WRONLY);
    if (!fd) return false;
  }
  const std::lock_guard lock(mutex_);
  // Set by the sender as well, but not if it has died since. Without it the record could become
  // another file's, which would be stored through this descriptor.
  const Owner self = memory_.owners().current(ClientSlot::kOfService);
  if (!memory_.objects().note_handed_over(index, store.key, self, memory_.owners())) return false;
  const auto number = static_cast<dev_t>(raw(store.key.store));
  const Device& device = device_of(number, fd.get());
  if (device.remote) memory_.objects().at(index).set(kObjectRemote);
  constexpr mode_t kExecutable = S_IXUSR | S_IXGRP | S_IXOTH;
  StoreFile::Traits traits;
  traits.rotational = device.rotational;
  traits.lingers = device.remote && (store.mode & kExecutable) == 0;
  traits.is_sent_early = device.in_user_space;
  CAIRN_CRASH_POINT("files.noted");
  StoreFilePtr& file = files_[raw(index)];
  // Two clients may hand the same file over: the first descriptor stays, with all that is known of
  // it, and with its place in the queue.
  StoreStatus known;
  if (file != nullptr && known_store_status(file->fd.get(), &known) == 0 &&
      known.key == object.key())
    return true;
  file = std::make_shared<StoreFile>(index, std::move(fd), number, traits);
  CAIRN_CHECK(file->fd);
  CAIRN_CHECK(!file->queued.load());
  file->room = std::move(room);
  file->run.store(run, std::memory_order_relaxed);
  return true;
}

bool StoreFiles::adopt(UniqueFd fd, FileRoom room) {
  StoreStatus status;
  ObjectIndex object = ObjectIndex::kNone;
  if (known_store_status(fd.get(), &status) == 0) object = memory_.objects().find(status.key);
  // A time of birth that the kernel has not kept is the store's to tell.
  if (object == ObjectIndex::kNone && store_status(fd.get(), &status) == 0)
    object = memory_.objects().find(status.key);
  if (object == ObjectIndex::kNone) return false;
  // Nobody knows whether its sender had lent it.
  if (!insert(object, with_own_description(std::move(fd)), std::move(room), 0)) return false;
  find(object)->sync_owed.store(true);
  return true;
}

void StoreFiles::adopt_stored(const UniqueFd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return;
  const std::lock_guard lock(mutex_);
  device_of(status.st_dev, fd.get()).sync_owed = true;
}

// A flag that says "handed over" of what is not here would keep the next writer from sending it.
void StoreFiles::forget_missing() {
  const std::uint32_t used = memory_.objects().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    const auto object = static_cast<ObjectIndex>(index);
    Object& record = memory_.objects().at(object);
    if (!record.has(kObjectLive) || !record.has(kObjectHandedOver) || find(object) != nullptr)
      continue;
    record.clear(kObjectHandedOver);
  }
}

StoreFilePtr StoreFiles::find(ObjectIndex object) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  return found == files_.end() ? nullptr : found->second;
}

std::vector<StoreFilePtr> StoreFiles::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoreFilePtr> all;
  all.reserve(files_.size());
  for (const auto& entry : files_) all.push_back(entry.second);
  return all;
}

std::size_t StoreFiles::count() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

bool StoreFiles::drop_if_idle(const StoreFilePtr& file) { return drop_unless(file, is_in_use); }

bool StoreFiles::drop_if_only_read(const StoreFilePtr& file) {
  return drop_unless(file, may_be_written);
}

bool StoreFiles::drop_unless(const StoreFilePtr& file, bool (*is_needed)(const Object&)) {
  Object& object = memory_.objects().at(file->object);
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(file->object));
  if (found == files_.end() || found->second != file || file->queued.load() || is_needed(object))
    return false;
  object.clear(kObjectHandedOver);
  if (is_needed(object)) {
    CAIRN_CRASH_POINT("files.dropping");
    object.set(kObjectHandedOver);
    return false;
  }
  if (file->sync_owed.load() && !is_deleted(*file)) {
    Device& device = device_of(file->device, file->fd.get());
    // Parked for reading only, which fsync accepts: the kernel runs no program that somebody has
    // open for writing.
    UniqueFd parked =
        device.closed.size() < std::min<std::size_t>(kClosedMax, spared_descriptors() / 8)
            ? reopen(file->fd.get(), O_RDONLY)
            : UniqueFd();
    if (parked) {
      device.closed.push_back(
          std::make_shared<StoreFile>(file->object, std::move(parked), file->device, file->traits));
      CAIRN_CHECK(device.closed.size() <= kClosedMax);
      object.mark(kMarkKeptForSync, true);
      memory_.flusher_board().bell.ring();  // which looks from now on whether it is deleted
    } else {
      device.sync_owed = true;
    }
  }
  CAIRN_CRASH_POINT("files.dropped");
  files_.erase(found);
  return true;
}

std::size_t StoreFiles::drop_idle() {
  std::size_t dropped = 0;
  for (const StoreFilePtr& file : snapshot()) {
    if (drop_if_idle(file)) ++dropped;
  }
  return dropped;
}

void StoreFiles::release(ObjectIndex object) {
  release_if([object](const StoreFile& file) { return file.object == object; });
}

void StoreFiles::release_deleted() {
  release_if([](const StoreFile&) { return true; });
}

void StoreFiles::release_if(const std::function<bool(const StoreFile&)>& is_meant) {
  std::vector<StoreFilePtr> deleted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, device] : devices_) {
      std::copy_if(device.closed.begin(), device.closed.end(), std::back_inserter(deleted),
                   [&is_meant](const StoreFilePtr& file) { return is_meant(*file); });
    }
  }
  // Without the lock: to ask, and to close the last descriptor of a file, may wait for the store.
  std::erase_if(deleted, [](const StoreFilePtr& file) { return !is_deleted(*file); });
  const std::lock_guard lock(mutex_);
  for (auto& [number, device] : devices_) {
    std::erase_if(device.closed, [&deleted](const StoreFilePtr& file) {
      return std::find(deleted.begin(), deleted.end(), file) != deleted.end();
    });
  }
}

bool StoreFiles::keeps_closed() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& entry) { return !entry.second.closed.empty(); });
}

int StoreFiles::make_durable() {
  std::map<dev_t, Device> devices;
  {
    // Files that are stored from here on belong to the next call.
    const std::lock_guard lock(mutex_);
    for (auto& [device, entry] : devices_) {
      Device taken;
      taken.sync_owed = std::exchange(entry.sync_owed, false);
      taken.closed = std::exchange(entry.closed, {});
      taken.place = entry.place;
      devices.emplace(device, std::move(taken));
    }
  }
  std::map<dev_t, std::vector<StoreFilePtr>> owed;
  for (const StoreFilePtr& file : snapshot()) {
    if (file->sync_owed.exchange(false)) owed[file->device].push_back(file);
  }
  int result = 0;
  for (auto& [device, entry] : devices) {
    std::vector<StoreFilePtr>& files = owed[device];
    files.insert(files.end(), entry.closed.begin(), entry.closed.end());
    const int error = sync_device(device, entry, files);
    if (error == 0) continue;
    if (result == 0) result = error;
    for (const StoreFilePtr& file : files) file->sync_owed.store(true);
    const std::lock_guard lock(mutex_);
    devices_[device].sync_owed = true;
  }
  return result;
}

int StoreFiles::sync_store(dev_t device) {
  std::shared_ptr<SyncPlace> place;
  {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(device);
    if (found == devices_.end()) return ENODEV;
    place = found->second.place;
  }
  return sync_all(device, *place);
}

int StoreFiles::sync_all(dev_t device, SyncPlace& place) const {
  if (!place.directory) return ENODEV;
  const std::lock_guard alone(place.mutex);
  if (::syncfs(place.directory.get()) == 0) return 0;
  const int error = errno;
  if (listener_ != nullptr) listener_->store_sync_failed(StoreId{device}, -error);
  return error;
}

// After a failure of all each file tells of itself: what was lost may be another program's.
int StoreFiles::sync_device(dev_t device, const Device& entry,
                            const std::vector<StoreFilePtr>& owed) const {
  if (owed.empty() && !entry.sync_owed) return 0;
  int result = 0;
  if (entry.sync_owed || owed.size() > kFsyncsMax) {
    const int error = sync_all(device, *entry.place);
    if (error == 0) return 0;
    if (entry.sync_owed) result = error;
  }
  for (const StoreFilePtr& file : owed) {
    const int error = sync_file(*file);
    if (result == 0) result = -error;
  }
  return result;
}

int StoreFiles::sync_file(StoreFile& file) const {
  const int error = file.backing.sync(SyncDepth::kAll);
  if (listener_ != nullptr) listener_->file_synced(file, error);
  return error;
}

int StoreFiles::sync_closed(ObjectIndex object) const {
  StoreFilePtr closed;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, device] : devices_) {
      for (const StoreFilePtr& file : device.closed) {
        if (file->object == object) closed = file;
      }
    }
  }
  // The record of its object may be another file's by now.
  StoreStatus status;
  if (closed == nullptr ||
      !is_file_of(closed->fd.get(), memory_.objects().at(object).key(), &status))
    return -ENODEV;
  return sync_file(*closed);
}

bool StoreFiles::readmit(const StoreFile& file) {
  StoreStatus status;
  if (!is_file_of(file.fd.get(), memory_.objects().at(file.object).key(), &status)) return false;
  if (find(file.object) != nullptr) return true;
  UniqueFd again = reopen(file.fd.get(), O_WRONLY);
  return again && insert(file.object, std::move(again), FileRoom(), file.run.load());
}

}  // namespace cairn::node
