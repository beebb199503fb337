// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/unsynced_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "memory/backing/posix_backing.h"
#include "service/process/block_device.h"
#include "service/profiler/directory_state.h"

namespace cairn::node {
namespace {

// Up to this many files are synced one by one; more are cheaper in one syncfs, which also waits for
// others' data.
constexpr std::size_t kFsyncsMax = 64;
constexpr std::size_t kClosedMax = 64;
// For each file system; of more files only a syncfs is owed.
constexpr std::size_t kNamesMax = 4096;

// A file that nobody can find any more has nothing to make durable.
bool is_deleted(const StoreFile& file) {
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0;
}

// Or another file has its name.
bool is_gone(const ClosedFile& file) {
  const UniqueFd found(::open(file.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  StoreStatus status;
  if (!found) return errno == ENOENT || errno == ENOTDIR;
  return !is_file_of(found.get(), file.key, &status);
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

}  // namespace

UnsyncedFiles::Device& UnsyncedFiles::device_of(dev_t device, int fd) {
  const auto [entry, created] = devices_.try_emplace(device);
  Device& found = entry->second;
  if (created) {
    found.traits.rotational = is_rotational(device);
    found.traits.remote = profiler::is_on_network(fd);
    found.traits.in_user_space = profiler::is_in_user_space(fd);
  }
  // There may have been no descriptor left the last time.
  if (found.place == nullptr || !found.place->directory)
    found.place = std::make_shared<SyncPlace>(directory_above(fd, device));
  return found;
}

UnsyncedFiles::DeviceTraits UnsyncedFiles::traits_of(dev_t device, int fd) {
  const std::lock_guard lock(mutex_);
  return device_of(device, fd).traits;
}

void UnsyncedFiles::keep(const StoreFile& file) {
  if (is_deleted(file)) return;
  Object& object = memory_.objects().at(file.object);
  const std::lock_guard lock(mutex_);
  Device& device = device_of(file.device, file.fd.get());
  // Parked for reading only, which fsync accepts: the kernel runs no program that somebody has open
  // for writing.
  UniqueFd parked =
      device.closed.size() < std::min<std::size_t>(kClosedMax, spared_descriptors() / 8)
          ? reopen(file.fd.get(), O_RDONLY)
          : UniqueFd();
  if (parked) {
    device.closed.push_back(
        std::make_shared<StoreFile>(file.object, std::move(parked), file.device, file.traits));
    CAIRN_CHECK(device.closed.size() <= kClosedMax);
    object.mark(kMarkKeptForSync, true);
    memory_.flusher_board().bell.ring();  // which looks from now on whether it is deleted
  } else {
    note_closed(device, {file.object, object.key(), path_of_descriptor(file.fd.get())});
  }
}

void UnsyncedFiles::note_closed(Device& device, ClosedFile file) {
  const std::uint32_t number = raw(file.object);
  const auto known = device.others.find(number);
  const bool is_another = known != device.others.end() && known->second.key != file.key;
  const bool has_room = known != device.others.end() || device.others.size() < kNamesMax;
  if (is_another || !has_room) device.owes_sync = true;
  if (has_room) device.others.insert_or_assign(number, std::move(file));
}

void UnsyncedFiles::adopt(const UniqueFd& fd) {
  StoreStatus status;
  if (store_status(fd.get(), &status) != 0) return;
  const ObjectIndex object = memory_.objects().find(status.key);
  const std::lock_guard lock(mutex_);
  Device& device = device_of(static_cast<dev_t>(raw(status.key.store)), fd.get());
  if (object == ObjectIndex::kNone)
    device.owes_sync = true;
  else
    note_closed(device, {object, status.key, path_of_descriptor(fd.get())});
}

void UnsyncedFiles::release(ObjectIndex object) {
  release_if([object](const StoreFile& file) { return file.object == object; });
}

void UnsyncedFiles::release_deleted() {
  release_if([](const StoreFile&) { return true; });
}

void UnsyncedFiles::release_if(const std::function<bool(const StoreFile&)>& is_meant) {
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

bool UnsyncedFiles::keeps_any() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& entry) { return !entry.second.closed.empty(); });
}

int UnsyncedFiles::make_durable(const std::vector<StoreFilePtr>& files) {
  std::map<dev_t, Device> devices;
  {
    // Files that are stored from here on belong to the next call.
    const std::lock_guard lock(mutex_);
    for (auto& [device, entry] : devices_) {
      Device taken;
      taken.place = entry.place;
      taken.closed = std::exchange(entry.closed, {});
      taken.others = std::exchange(entry.others, {});
      taken.owes_sync = std::exchange(entry.owes_sync, false);
      devices.emplace(device, std::move(taken));
    }
  }
  std::map<dev_t, std::vector<StoreFilePtr>> owed;
  for (const StoreFilePtr& file : files) owed[file->device].push_back(file);
  int result = look_at_lost();
  for (const auto& [device, taken] : devices) {
    std::vector<StoreFilePtr>& its = owed[device];
    its.insert(its.end(), taken.closed.begin(), taken.closed.end());
    const int error = sync_device(device, taken, its);
    if (result == 0) result = error;
  }
  return result;
}

// After a failure of all each file tells of itself: what was lost may be another program's.
int UnsyncedFiles::sync_device(dev_t device, const Device& taken,
                               const std::vector<StoreFilePtr>& owed) {
  int result = 0;
  const bool needs_all = taken.owes_sync || !taken.others.empty();
  if (needs_all || owed.size() > kFsyncsMax) {
    const int error = sync_all(device, *taken.place);
    if (error == 0) return 0;
    if (needs_all) result = error;
    for (const auto& [number, file] : taken.others) {
      if (listener_ == nullptr || listener_->store_again(file) == Fate::kLost) note_lost(file);
    }
    const std::lock_guard lock(mutex_);
    // Nobody knows what that was: it is owed for ever.
    if (taken.owes_sync)
      lost_.push_back({ObjectIndex::kNone, {}, "files of device " + std::to_string(device)});
  }
  for (const StoreFilePtr& file : owed) {
    const ClosedFile names{file->object, memory_.objects().at(file->object).key(),
                           path_of_descriptor(file->fd.get())};
    const std::lock_guard alone(file->sync_mutex);
    const int error = file->backing.sync(SyncDepth::kAll);
    const bool is_lost =
        listener_ != nullptr && listener_->file_synced(*file, error) == Fate::kLost;
    if (error == 0) continue;
    if (result == 0) result = -error;
    if (is_lost) note_lost(names);
    file->sync_owed.store(true);
  }
  return result;
}

void UnsyncedFiles::note_lost(const ClosedFile& file) {
  const std::lock_guard lock(mutex_);
  lost_.push_back(file);
}

int UnsyncedFiles::look_at_lost() {
  std::vector<ClosedFile> known;
  {
    const std::lock_guard lock(mutex_);
    known = std::exchange(lost_, {});
  }
  const std::size_t count = known.size();
  std::erase_if(known, [this](const ClosedFile& file) {
    if (file.object == ObjectIndex::kNone) return false;
    return is_gone(file) || (listener_ != nullptr && listener_->store_again(file) != Fate::kLost);
  });
  const std::lock_guard lock(mutex_);
  lost_.insert(lost_.end(), known.begin(), known.end());
  return count == 0 ? 0 : EIO;
}

std::vector<ClosedFile> UnsyncedFiles::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

int UnsyncedFiles::sync_file(StoreFile& file, SyncDepth depth) const {
  const std::lock_guard alone(file.sync_mutex);
  const int error = file.backing.sync(depth);
  if (listener_ != nullptr) (void)listener_->file_synced(file, error);
  return error;
}

int UnsyncedFiles::sync_closed(ObjectIndex object) const {
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
  return sync_file(*closed, SyncDepth::kAll);
}

int UnsyncedFiles::sync_store(dev_t device) {
  std::shared_ptr<SyncPlace> place;
  {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(device);
    if (found == devices_.end()) return ENODEV;
    place = found->second.place;
  }
  return sync_all(device, *place);
}

int UnsyncedFiles::sync_all(dev_t device, SyncPlace& place) const {
  if (!place.directory) return ENODEV;
  const std::lock_guard alone(place.mutex);
  if (::syncfs(place.directory.get()) == 0) return 0;
  const int error = errno;
  if (listener_ != nullptr) listener_->store_sync_failed(StoreId{device}, -error);
  return error;
}

}  // namespace cairn::node
