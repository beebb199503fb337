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

}  // namespace

// Returns 0 or -errno. One that is gone has no names; one that cannot be found, or opened, is
// durable with all of its store.
int LeftDirectories::make_durable(const durable::FileIdentity& identity) const {
  const int found = durable::open_directory(identity);
  if (found == -ESTALE) return 0;
  const bool may_be_there = found == -ENOENT || found == -EACCES || found == -EPERM;
  if (found < 0) return may_be_there && sync_store_ ? sync_store_(identity.key.store) : found;
  const UniqueFd fd(found);
  return ::fsync(fd.get()) == 0 ? 0 : -errno;
}

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
    int error = make_durable(left.identity);
    // Nothing of its store is in use, so nobody depends on it: its names stay for recovery.
    if (error == -ENODEV) continue;
    if (error == 0) error = note_stored(left.identity.key);
    if (result == 0) result = error;
  }
  return result;
}

int LeftDirectories::note_stored(const ObjectKey& directory) {
  {
    const std::lock_guard lock(mutex_);
    if (left_.empty() && said_ == durable::Lsn::kNone) return 0;
  }
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
  const std::lock_guard saying(saying_);
  const auto is_meant = [&](const auto& left) { return left.identity.key == directory; };
  durable::LogObject object = durable::LogObject::kNone;
  durable::Lsn upto = durable::Lsn::kNone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(left_, is_meant);
    if (found == left_.end()) return Status::ok();
    object = found->object;
    upto = upto_;
  }
  CAIRN_RETURN_IF_ERROR(log_.retire(object, upto, {}));
  log_.forget(object);
  const std::lock_guard lock(mutex_);
  said_ = log_.appended();
  std::erase_if(left_, is_meant);
  memory_.service_board().named_directories.fetch_sub(1);
  return Status::ok();
}

}  // namespace cairn::node
