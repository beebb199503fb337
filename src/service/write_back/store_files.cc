// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "memory/backing/posix_backing.h"
#include "service/write_back/found_file.h"

namespace cairn::node {
namespace {

bool is_unstored(const Object& object) {
  return object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty);
}

bool is_in_use(const Object& object) { return object.opens.load() != 0 || is_unstored(object); }

bool may_be_written(const Object& object) {
  return object.writers.load() != 0 || is_unstored(object);
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
  const auto number = static_cast<dev_t>(raw(store.key.store));
  const UnsyncedFiles::DeviceTraits device = unsynced_.traits_of(number, fd.get());
  const std::lock_guard lock(mutex_);
  // Set by the sender as well, but not if it has died since. Without it the record could become
  // another file's, which would be stored through this descriptor.
  const Owner self = memory_.owners().current(ClientSlot::kOfService);
  if (!memory_.objects().note_handed_over(index, store.key, self, memory_.owners())) return false;
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
  file = std::make_shared<StoreFile>(index, store.key, std::move(fd), traits);
  file->is_younger_than_doubt.store(is_doubted(object));
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
  const StoreFilePtr file = find(object);
  file->stored.add(StoredRanges::everything());
  file->sync_owed.store(true);
  return true;
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

std::string StoreFiles::path_of(ObjectIndex object) const {
  const StoreFilePtr open = find(object);
  return open != nullptr ? path_of_descriptor(open->fd.get()) : unsynced_.path_of(object);
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
  if (file->sync_owed.load()) unsynced_.keep(*file);
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

int StoreFiles::make_durable() {
  const std::uint64_t failures = unsynced_.failures();
  // Another call has taken the debts, and may be about to hear that its fsync has failed.
  const std::lock_guard alone(durable_mutex_);
  std::vector<StoreFilePtr> owed;
  for (const StoreFilePtr& file : snapshot()) {
    // And so may an fsync of the file that is under way.
    const std::lock_guard no_sync(file->sync_mutex);
    // Files that are stored from here on belong to the next call.
    if (file->sync_owed.exchange(false)) owed.push_back(file);
  }
  const int error = unsynced_.make_durable(owed);
  return error == 0 && unsynced_.failures() != failures ? EIO : error;
}

bool StoreFiles::readmit(const ClosedFile& file, int other) {
  if (find(file.object) != nullptr) return true;
  UniqueFd again = other >= 0 ? reopen(other, O_WRONLY) : UniqueFd();
  if (!again && file.place != nullptr) again = reopen(file.place->get(), O_WRONLY | O_NONBLOCK);
  if (!again) {
    const UniqueFd found = find_file(file.key, file.path);
    if (found) again = reopen(found.get(), O_WRONLY | O_NONBLOCK);
  }
  StoreStatus status;
  if (!again || !is_file_of(again.get(), file.key, &status)) return false;
  return insert(file.object, std::move(again), FileRoom(), 0);
}

}  // namespace cairn::node
