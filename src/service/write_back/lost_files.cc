// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/lost_files.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <string>

#include "memory/backing/posix_backing.h"
#include "service/write_back/found_file.h"

namespace cairn::node {
namespace {

// They are the file systems' to give back when the files are deleted.
constexpr std::size_t kPlacesMax = 64;

bool is_deleted(const UniqueFd& place) {
  StoreStatus status;
  return store_status(place.get(), &status) == 0 && status.links == 0;
}

std::string describe_store(dev_t device) {
  return "files of device " + std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

}  // namespace

void LostFiles::note(ClosedFile file) {
  // There may be no descriptor left.
  if (file.place != nullptr && !*file.place) file.place.reset();
  if (file.place == nullptr) {
    if (UniqueFd found = find_file(file.key, file.path))
      file.place = std::make_shared<const UniqueFd>(std::move(found));
  }
  const std::lock_guard lock(mutex_);
  if (const auto known = files_.find(file.key); known != files_.end()) {
    file.stored.add(known->second.stored);
    files_.erase(known);
  }
  if (places() >= std::min<std::size_t>(kPlacesMax, spared_descriptors() / 8)) file.place.reset();
  Object& object = memory_.objects().at(file.object);
  if (object.is_of(file.key)) {
    object.note_trouble(kBytesLost, true);
    // The record may have become another file's meanwhile.
    if (!object.is_of(file.key)) object.note_trouble(kBytesLost, false);
  }
  if (file.place != nullptr) {
    if (object.is_of(file.key)) object.mark(kMarkKeptForSync, true);
    memory_.flusher_board().bell.ring();  // which looks from now on whether it is deleted
  }
  files_.emplace(file.key, std::move(file));
}

std::size_t LostFiles::places() const {
  return static_cast<std::size_t>(
      std::count_if(files_.begin(), files_.end(),
                    [](const auto& entry) { return entry.second.place != nullptr; }));
}

bool LostFiles::keeps_any() const {
  const std::lock_guard lock(mutex_);
  return places() != 0;
}

void LostFiles::release_deleted() {
  for (const ClosedFile& file : all()) {
    if (file.place == nullptr || !is_deleted(*file.place)) continue;
    const std::lock_guard lock(mutex_);
    forget(file.key);
  }
}

void LostFiles::forget(const ObjectKey& key) {
  const auto known = files_.find(key);
  if (known == files_.end()) return;
  Object& object = memory_.objects().at(known->second.object);
  if (object.is_of(key)) object.note_trouble(kBytesLost, false);
  files_.erase(known);
}

void LostFiles::note_stored(const ObjectKey& key, const StoredRanges& stored) {
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(key);
  if (known == files_.end()) return;
  known->second.stored.subtract(stored);
  if (known->second.stored.is_empty()) forget(key);
}

void LostFiles::note_of_store(dev_t device) {
  const std::lock_guard lock(mutex_);
  stores_.insert(device);
}

std::vector<ClosedFile> LostFiles::all() const {
  std::vector<ClosedFile> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, file] : files_) all.push_back(file);
  for (const dev_t device : stores_)
    all.push_back(
        {ObjectIndex::kNone, file_key(device, 0, 0), describe_store(device), nullptr, {}});
  return all;
}

bool LostFiles::is_gone(const ClosedFile& file) const {
  if (file.place != nullptr) return is_deleted(*file.place);
  if (file.path.empty()) return true;
  if (find_file(file.key, file.path)) return false;
  // It may have been moved to another folder.
  const Object& object = memory_.objects().at(file.object);
  return !object.is_of(file.key) || object.has(kObjectUnlinked);
}

bool LostFiles::is_over(const ClosedFile& file, SyncListener* listener) const {
  if (file.object == ObjectIndex::kNone) return false;
  if (is_gone(file)) return true;
  // What the tiers had of them was dirty again at once.
  const bool has_some =
      memory_.objects().at(file.object).is_of(file.key) &&
      file.stored.in_tiers(memory_, file.object) != StoredRanges::Residency::kNone;
  return has_some && listener != nullptr && listener->store_again(file) != Fate::kLost;
}

bool LostFiles::look_again(const std::vector<ClosedFile>& known, SyncListener* listener) {
  for (const ClosedFile& file : known) {
    if (!is_over(file, listener)) continue;
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(file.key);
    // It may have lost more since.
    if (found != files_.end() && found->second.stored == file.stored) forget(file.key);
  }
  return !known.empty();
}

}  // namespace cairn::node
