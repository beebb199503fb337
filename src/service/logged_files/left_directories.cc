// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/left_directories.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "service/durable_log/directory_search.h"
#include "service/logged_files/name_keeper.h"
#include "service/process/unique_fd.h"

namespace cairn::node {
namespace {

bool is_of(const durable::LoggedDirectory& directory, StoreId store) {
  return directory.identity.key.store == store;
}

// Returns 0 or -errno. One that is gone has no names.
int sync_directory(const durable::FileIdentity& identity) {
  const int found = durable::open_directory(identity);
  if (found < 0) return found == -ESTALE ? 0 : found;
  const UniqueFd fd(found);
  return ::fsync(fd.get()) == 0 ? 0 : -errno;
}

}  // namespace

void LeftDirectories::inherit() {
  const std::lock_guard lock(mutex_);
  left_ = log_.directories();
  upto_ = log_.appended();
  memory_.service_board().named_directories.store(static_cast<std::uint32_t>(left_.size()));
}

bool LeftDirectories::is_empty() const {
  const std::lock_guard lock(mutex_);
  return left_.empty();
}

bool LeftDirectories::has_any_of(StoreId store) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(left_, [store](const auto& left) { return is_of(left, store); });
}

int LeftDirectories::store(std::optional<StoreId> only) {
  std::vector<durable::LoggedDirectory> owing;
  {
    const std::lock_guard lock(mutex_);
    owing = left_;
  }
  if (only) std::erase_if(owing, [only](const auto& left) { return !is_of(left, *only); });
  if (owing.empty()) return 0;
  int result = 0;
  for (const durable::LoggedDirectory& left : owing) {
    int error = sync_directory(left.identity);
    if (error == -ENOENT) {
      give_up(left.identity.key);
      continue;
    }
    if (error == 0) error = note_stored(left.identity.key);
    if (result == 0) result = error;
  }
  return result;
}

int LeftDirectories::note_stored(const ObjectKey& directory) {
  Status done = retire(directory);
  durable::Lsn said = durable::Lsn::kNone;
  {
    // Another thread may have said it, and the word be on its way to the device.
    const std::lock_guard lock(mutex_);
    said = said_;
  }
  if (done && said > log_.durable()) done = log_.commit_within(said, kCommitMax);
  return done ? 0 : done.error_number() != 0 ? -done.error_number() : -EIO;
}

Status LeftDirectories::retire(const ObjectKey& directory) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(left_, [&](const auto& left) { return left.identity.key == directory; });
  if (found == left_.end()) return Status::ok();
  CAIRN_RETURN_IF_ERROR(log_.retire(found->object, upto_, {}));
  log_.forget(found->object);
  said_ = log_.appended();
  left_.erase(found);
  memory_.service_board().named_directories.fetch_sub(1);
  return Status::ok();
}

// Nobody here can find it: its names stay in the log, for recovery.
void LeftDirectories::give_up(const ObjectKey& directory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(left_, [&](const auto& left) { return left.identity.key == directory; });
}

}  // namespace cairn::node
