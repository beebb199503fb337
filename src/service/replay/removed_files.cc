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

bool RemovedFiles::has_place_of(const PendingFile& by) const {
  const std::string& path = by.identity.path;
  const auto is_it = [&](const PendingFile& file) {
    return file.superseded_by == by.object && file.identity.path == path;
  };
  if (std::ranges::none_of(files_, is_it)) return false;
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  const bool has = fd >= 0 && std::ranges::any_of(files_, [&](const PendingFile& file) {
                     return is_it(file) && is_certainly(file, fd);
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
  return sync_around(file.identity.path);
}

// Once for each device: what is nowhere now was removed before the node died, or lost in a crash.
int RemovedFiles::sync_around(std::string path) {
  int fd = -1;
  while (fd < 0 && path != "/" && path != ".") {
    path = folder_of(path);
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  struct stat status{};
  int error = fd < 0 || ::fstat(fd, &status) != 0 ? errno : 0;
  if (error == 0 && !synced_.contains(status.st_dev)) {
    step_("flush absence");
    error = ::syncfs(fd) == 0 ? 0 : errno;
    if (error == 0) synced_.insert(status.st_dev);
  }
  if (fd >= 0) ::close(fd);
  return error;
}

}  // namespace cairn::durable
