// SPDX-License-Identifier: Apache-2.0
#include "service/replay/removed_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "service/replay/found_file.h"
#include "service/replay/saved_copy.h"

namespace cairn::durable {

RemovedFiles::RemovedFiles(std::span<const PendingFile> files, Step step) : step_(std::move(step)) {
  for (const PendingFile& file : files) {
    if (file.is_superseded()) superseded_.emplace(file.superseded_by, &file);
  }
}

bool RemovedFiles::has_place_of(const PendingFile& by) const {
  const std::string& path = by.identity.path;
  const auto [first, last] = superseded_.equal_range(by.object);
  if (first == last) return false;
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  const bool has = fd >= 0 && std::any_of(first, last, [&](const auto& entry) {
                     const PendingFile& file = *entry.second;
                     return file.identity.path == path && is_certainly(file, fd);
                   });
  if (fd >= 0) ::close(fd);
  return has;
}

int RemovedFiles::take_place(const PendingFile& by, const std::string& from) const {
  const std::string& path = by.identity.path;
  if (from == path || !has_place_of(by)) return 0;
  step_("take place");
  if (::rename(from.c_str(), path.c_str()) != 0) return errno;
  return sync_folder_of(folder_of(path));
}

int RemovedFiles::forget(const PendingFile& file) {
  if (has_place_of(file)) {
    step_("remove");
    if (::unlink(file.identity.path.c_str()) != 0) return errno;
    if (const int error = sync_folder_of(folder_of(file.identity.path)); error != 0) return error;
  }
  return sync_around(file);
}

// Once for each device: what is nowhere now was removed before the node died, or lost in a crash.
int RemovedFiles::sync_around(const PendingFile& file) {
  const int fd = open_folder_above(file.identity.path);
  struct stat status{};
  int error = fd < 0 || ::fstat(fd, &status) != 0 ? errno : fault_of_store(file, fd);
  if (error == 0 && !synced_.contains(status.st_dev)) {
    step_("flush absence");
    error = ::syncfs(fd) == 0 ? 0 : errno;
    if (error == 0) synced_.insert(status.st_dev);
  }
  if (fd >= 0) ::close(fd);
  return error;
}

}  // namespace cairn::durable
