// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_file.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace cairn::node {

std::string path_of_descriptor(int fd) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length))
                    : std::string("(unknown)");
}

std::string path_of_descriptor(pid_t pid, int fd) {
  char link[48];
  std::snprintf(link, sizeof link, "/proc/%d/fd/%d", static_cast<int>(pid), fd);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

bool is_file_of(int fd, const ObjectKey& key, StoreStatus* status) {
  const bool is_known = known_store_status(fd, status) == 0 && status->key == key;
  if (!is_known && (store_status(fd, status) != 0 || status->key != key)) return false;
  return S_ISREG(status->mode);
}

UniqueFd reopen(int fd, int access_mode) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return UniqueFd(::open(link, access_mode | O_CLOEXEC));
}

}  // namespace cairn::node
