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
// For each file system; of more files only a syncfs is owed.
constexpr std::size_t kNamesMax = 4096;

// A file that nobody can find any more has nothing to make durable.
bool is_deleted(const StoreFile& file) {
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0;
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
      device.debts.closed.size() < std::min<std::size_t>(kClosedMax, spared_descriptors() / 8)
          ? reopen(file.fd.get(), O_RDONLY)
          : UniqueFd();
  if (parked) {
    device.debts.closed.push_back(
        std::make_shared<StoreFile>(file.object, file.key, std::move(parked), file.traits));
    device.debts.closed.back()->stored.add(file.stored.get());
    device.debts.closed.back()->is_younger_than_doubt.store(is_doubted(object));
    CAIRN_CHECK(device.debts.closed.size() <= kClosedMax);
    object.mark(kMarkKeptForSync, true);
    memory_.flusher_board().bell.ring();  // which looks from now on whether it is deleted
  } else {
    device.debts.note(
        {file.object, file.key, path_of_descriptor(file.fd.get()), nullptr, file.stored.get()});
  }
}

void UnsyncedFiles::Debts::note(ClosedFile file) {
  const auto known = others.find(file.key);
  if (known != others.end()) {
    file.stored.add(known->second.stored);
    known->second = std::move(file);
  } else if (others.size() < kNamesMax) {
    others.emplace(file.key, std::move(file));
  } else {
    owes_sync = true;
  }
}

void UnsyncedFiles::Debts::add(Debts more) {
  closed.insert(closed.end(), more.closed.begin(), more.closed.end());
  for (auto& [key, file] : more.others) note(std::move(file));
  owes_sync = owes_sync || more.owes_sync;
  if (error == 0) error = more.error;
}

void UnsyncedFiles::adopt(const UniqueFd& fd) {
  StoreStatus status;
  if (store_status(fd.get(), &status) != 0) return;
  const ObjectIndex object = memory_.objects().find(status.key);
  const std::lock_guard lock(mutex_);
  Device& device = device_of(static_cast<dev_t>(raw(status.key.store)), fd.get());
  if (object == ObjectIndex::kNone)
    device.debts.owes_sync = true;
  else
    device.debts.note(
        {object, status.key, path_of_descriptor(fd.get()), nullptr, StoredRanges::everything()});
}

void UnsyncedFiles::release(ObjectIndex object) {
  lost_.release_deleted();
  release_if([object](const StoreFile& file) { return file.object == object; });
}

void UnsyncedFiles::release_deleted() {
  lost_.release_deleted();
  release_if([](const StoreFile&) { return true; });
}

void UnsyncedFiles::release_if(const std::function<bool(const StoreFile&)>& is_meant) {
  std::vector<StoreFilePtr> deleted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, device] : devices_) {
      const std::vector<StoreFilePtr>& closed = device.debts.closed;
      std::copy_if(closed.begin(), closed.end(), std::back_inserter(deleted),
                   [&is_meant](const StoreFilePtr& file) { return is_meant(*file); });
    }
  }
  // Without the lock: to ask, and to close the last descriptor of a file, may wait for the store.
  std::erase_if(deleted, [](const StoreFilePtr& file) { return !is_deleted(*file); });
  const std::lock_guard lock(mutex_);
  for (auto& [number, device] : devices_) {
    std::erase_if(device.debts.closed, [&deleted](const StoreFilePtr& file) {
      return std::find(deleted.begin(), deleted.end(), file) != deleted.end();
    });
  }
}

bool UnsyncedFiles::keeps_any() const {
  if (lost_.keeps_any()) return true;
  const std::lock_guard lock(mutex_);
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& entry) { return !entry.second.debts.closed.empty(); });
}

int UnsyncedFiles::make_durable(const std::vector<StoreFilePtr>& files) {
  const std::vector<ClosedFile> lost_before = lost_.all();
  std::map<dev_t, Debts> debts;
  {
    // Files that are stored from here on belong to the next call.
    const std::lock_guard lock(mutex_);
    for (auto& [device, entry] : devices_) debts.emplace(device, std::exchange(entry.debts, {}));
  }
  std::map<dev_t, std::vector<StoreFilePtr>> owed;
  for (const StoreFilePtr& file : files) owed[file->device].push_back(file);
  int result = 0;
  for (auto& [device, its] : debts) {
    const int error = sync_device(device, std::move(its), std::move(owed[device]));
    if (result == 0) result = error;
  }
  const bool were_lost = lost_.look_again(lost_before, listener_);
  return result == 0 && were_lost ? EIO : result;
}

int UnsyncedFiles::sync_device(dev_t device, Debts debts, std::vector<StoreFilePtr> owed) {
  int result = 0;
  const bool is_by_name = debts.is_by_name();
  if (is_by_name || owed.size() + debts.closed.size() > kFsyncsMax) {
    std::vector<StoreFilePtr> with_it = owed;
    with_it.insert(with_it.end(), debts.closed.begin(), debts.closed.end());
    const std::vector<StoredRanges> stored = take_stored(with_it);
    for (const StoreFilePtr& file : with_it) note_sync(file->object, file->key, true);
    note_syncs(debts, true);
    const int error = sync_by_name(device, &debts);
    for (std::size_t at = 0; at < with_it.size(); ++at) {
      if (error == 0) {
        lost_.note_stored(with_it[at]->key, stored[at]);
        note_sync(with_it[at]->object, with_it[at]->key, false);
      } else {
        // Its own fsync is to say whether it has lost something: until then it is under way.
        with_it[at]->stored.add(stored[at]);
      }
    }
    if (error == 0) return 0;
    if (is_by_name || debts.is_by_name()) result = error;
  }
  // syncfs speaks of all programs' files. After its failure the fsync of each file that has a
  // descriptor says whether the file is among them.
  owed.insert(owed.end(), debts.closed.begin(), debts.closed.end());
  const int error = sync_each(owed);
  return result == 0 ? error : result;
}

std::vector<StoredRanges> UnsyncedFiles::take_stored(const std::vector<StoreFilePtr>& files) {
  std::vector<StoredRanges> stored;
  for (const StoreFilePtr& file : files) {
    const std::lock_guard no_sync(file->sync_mutex);
    stored.push_back(file->stored.take());
  }
  return stored;
}

int UnsyncedFiles::sync_by_name(dev_t device, Debts* debts) {
  const int answer = sync_store(device);
  {
    const std::lock_guard lock(mutex_);
    Debts& since = devices_.at(device).debts;
    if (answer == ENODEV) {
      since.others.merge(std::exchange(debts->others, {}));
      since.owes_sync = std::exchange(debts->owes_sync, false) || since.owes_sync;
      return answer;
    }
    // Another caller may have heard of the failure. And the files that have closed meanwhile may
    // be those that it speaks of.
    if (since.error != 0) debts->add(std::exchange(since, {}));
  }
  if (debts->error == 0) {
    note_syncs(*debts, false);
    return 0;
  }
  for (const auto& [key, file] : debts->others) {
    if (listener_ == nullptr || listener_->store_again(file) == Fate::kLost) lost_.note(file);
  }
  note_syncs(*debts, false);
  if (debts->owes_sync) lost_.note_of_store(device);
  return debts->error;
}

int UnsyncedFiles::sync_each(const std::vector<StoreFilePtr>& owed) {
  int result = 0;
  for (const StoreFilePtr& file : owed) {
    const int error = sync_file(*file, SyncDepth::kAll);
    if (error == 0) continue;
    file->sync_owed.store(true);
    if (result == 0) result = -error;
  }
  return result;
}

int UnsyncedFiles::sync_file(StoreFile& file, SyncDepth depth) {
  const std::lock_guard alone(file.sync_mutex);
  if (depth == SyncDepth::kAll) file.sync_owed.store(false);
  SyncAnswer answer;
  answer.failures_before = memory_.objects().at(file.object).sync_failures.load();
  answer.stored = file.stored.take();
  note_sync(file.object, file.key, true);
  answer.error = file.backing.sync(depth);
  CAIRN_CRASH_POINT("files.synced");
  // And what was stored meanwhile.
  if (answer.error != 0) answer.stored.add(file.stored.take());
  Fate fate = answer.error == 0 ? Fate::kSafe : Fate::kDirtyAgain;
  if (listener_ != nullptr) fate = listener_->file_synced(file, answer);
  if (answer.error == 0) lost_.note_stored(file.key, answer.stored);
  if (fate == Fate::kLost) note_lost(file, answer.stored);
  note_sync(file.object, file.key, false);
  if (fate == Fate::kSafe) return answer.error;
  file.sync_owed.store(true);
  failures_.fetch_add(1);
  return answer.error;
}

void UnsyncedFiles::note_syncs(const Debts& debts, bool are_under_way) {
  for (const auto& [key, file] : debts.others) note_sync(file.object, key, are_under_way);
  for (const StoreFilePtr& file : debts.closed) {
    if (are_under_way) note_sync(file->object, file->key, true);
  }
}

// Two syncs of one file at a time, and a death in between, are not told apart.
void UnsyncedFiles::note_sync(ObjectIndex object, const ObjectKey& key, bool is_under_way) {
  Object& record = memory_.objects().at(object);
  if (record.is_of(key)) record.note_trouble(kSyncUnderWay, is_under_way);
}

std::string UnsyncedFiles::path_of(ObjectIndex object) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, device] : devices_) {
    for (const StoreFilePtr& file : device.debts.closed) {
      if (file->object == object) return path_of_descriptor(file->fd.get());
    }
    for (const auto& [key, file] : device.debts.others) {
      if (file.object == object) return file.path;
    }
  }
  return {};
}

void UnsyncedFiles::note_lost(const StoreFile& file, const StoredRanges& stored) {
  if (is_deleted(file)) return;
  const int fd = file.fd.get();
  lost_.note({file.object, file.key, path_of_descriptor(fd),
              std::make_shared<const UniqueFd>(reopen(fd, O_PATH)), stored});
}

int UnsyncedFiles::sync_closed(ObjectIndex object) {
  StoreFilePtr closed;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, device] : devices_) {
      for (const StoreFilePtr& file : device.debts.closed) {
        if (file->object == object) closed = file;
      }
    }
  }
  // The record of its object may be another file's by now.
  if (closed == nullptr || !memory_.objects().at(object).is_of(closed->key)) return -ENODEV;
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
  if (!place->directory) return ENODEV;
  const std::lock_guard alone(place->mutex);
  if (::syncfs(place->directory.get()) == 0) return 0;
  const int error = errno;
  {
    // The next drain counts it as its own failure: the kernel tells the place once. A successor
    // would not hear of it.
    const std::lock_guard lock(mutex_);
    Debts& debts = devices_.at(device).debts;
    debts.error = error;
    note_syncs(debts, true);
  }
  if (listener_ != nullptr) listener_->store_sync_failed(StoreId{device}, -error);
  return error;
}

}  // namespace cairn::node
