// SPDX-License-Identifier: Apache-2.0
#include "frontends/driver/node_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

namespace cairn::driver {
namespace {

// The names of nodes that `cairn run` starts for itself begin so.
constexpr char kOfOneRun[] = "run-";

const char* variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

template <std::size_t Size, typename... Parts>
bool compose(char (&text)[Size], const char* format, Parts... parts) {
  const int length = snprintf(text, Size, format, parts...);
  return length > 0 && static_cast<std::size_t>(length) < Size;
}

// What lies in a directory that others may write is not to be trusted.
bool is_own_directory(const char* path) {
  struct stat status{};
  return ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

bool answers(const char* directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!compose(address.sun_path, "%s/control.sock", directory)) return false;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN: the service is there, and many wait for it.
  const bool is_connected = ::connect(fd, generic, sizeof address) == 0 || errno == EAGAIN;
  ::close(fd);
  return is_connected;
}

// The service and its keeper hold the lock of a file together, so it outlives the service.
bool is_kept(const char* directory) {
  char path[PATH_MAX];
  if (!compose(path, "%s/node.pid", directory)) return false;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool is_locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // A child that another thread has just forked would keep the lock.
  if (!is_locked) ::flock(fd, LOCK_UN);
  ::close(fd);
  return is_locked;
}

bool is_live(const char* directory) {
  return is_own_directory(directory) && (answers(directory) || is_kept(directory));
}

bool socket_in(const char* directory, NodeSocket& socket) {
  return compose(socket.path, "%s/client.sock", directory);
}

bool find_run_root(char (&root)[PATH_MAX]) {
  if (const char* chosen = variable("CAIRN_RUN_ROOT")) return compose(root, "%s", chosen);
  if (const char* runtime = variable("XDG_RUNTIME_DIR")) return compose(root, "%s/cairn", runtime);
  return compose(root, "/tmp/cairn-%u", ::geteuid());
}

// Whether exactly one node is live in the run root.
bool find_only_node(const char* root, NodeSocket& socket) {
  DIR* entries = ::opendir(root);
  if (entries == nullptr) return false;
  unsigned found = 0;
  while (const dirent* entry = ::readdir(entries)) {
    const char* name = entry->d_name;
    char directory[PATH_MAX];
    if (name[0] == '.' || strncmp(name, kOfOneRun, sizeof kOfOneRun - 1) == 0) continue;
    if (!compose(directory, "%s/%s", root, name) || !is_live(directory)) continue;
    if (!socket_in(directory, socket)) continue;
    ++found;
  }
  ::closedir(entries);
  return found == 1;
}

}  // namespace

bool find_node(NodeSocket& socket) {
  CAIRN_DCHECK(sizeof socket.path > sizeof kOfOneRun);
  if (getenv("CAIRN_BYPASS") != nullptr) return false;
  if (const char* given = variable("CAIRN_SOCKET")) return compose(socket.path, "%s", given);
  char root[PATH_MAX];
  if (!find_run_root(root)) return false;
  const char* name = variable("CAIRN_NODE_NAME");
  if (name == nullptr) return is_own_directory(root) && find_only_node(root, socket);
  char directory[PATH_MAX];
  const bool is_path = strchr(name, '/') != nullptr;
  const bool fits =
      is_path ? compose(directory, "%s", name) : compose(directory, "%s/%s", root, name);
  return fits && is_live(directory) && socket_in(directory, socket);
}

}  // namespace cairn::driver
