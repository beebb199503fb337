// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/lost_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "memory/backing/posix_backing.h"

namespace cairn::node {
namespace {

// Or another file has its name.
bool is_gone(const ClosedFile& file) {
  const UniqueFd found(::open(file.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  StoreStatus status;
  if (!found) return errno == ENOENT || errno == ENOTDIR;
  return !is_file_of(found.get(), file.key, &status);
}

std::string describe_store(dev_t device) {
  return "files of device " + std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

}  // namespace

void LostFiles::note(const ClosedFile& file) {
  const std::lock_guard lock(mutex_);
  files_.insert_or_assign(file.key, file);
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
    all.push_back({ObjectIndex::kNone, file_key(device, 0, 0), describe_store(device)});
  return all;
}

bool LostFiles::is_over(const ClosedFile& file, SyncListener* listener) const {
  if (file.object == ObjectIndex::kNone) return false;
  return is_gone(file) || (listener != nullptr && listener->store_again(file) != Fate::kLost);
}

bool LostFiles::look_again(const std::vector<ClosedFile>& known, SyncListener* listener) {
  for (const ClosedFile& file : known) {
    if (!is_over(file, listener)) continue;
    const std::lock_guard lock(mutex_);
    files_.erase(file.key);
  }
  return !known.empty();
}

}  // namespace cairn::node
