// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/directory_search.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/check.h"
#include "service/durable_log/file_handle.h"
#include "service/durable_log/file_look.h"

namespace cairn::durable {

namespace {

constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

bool is_absence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ESTALE;
}

// Closes another one.
bool is_it(int fd, const FileId& id) {
  CAIRN_CHECK(fd >= 0);
  FileLook look;
  if (look_at(fd, ".", &look) == 0 && look.file.id == id && look.status.stx_nlink != 0) return true;
  ::close(fd);
  return false;
}

}  // namespace

int open_directory(const FileIdentity& identity) {
  int fd = ::open(identity.path.c_str(), kFlags);
  if (fd < 0 && !is_absence(errno)) return -errno;
  if (fd >= 0 && is_it(fd, identity.key.id)) return fd;
  if (identity.handle.empty()) return -ENOENT;
  const std::string above = identity.path.substr(0, identity.path.rfind('/') + 1);
  const int place = ::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place < 0) return -ENOENT;
  fd = open_by_handle(place, identity.handle, kFlags);
  ::close(place);
  if (fd < 0) return fd == -ESTALE ? -ESTALE : -ENOENT;
  return is_it(fd, identity.key.id) ? fd : -ENOENT;
}

}  // namespace cairn::durable
