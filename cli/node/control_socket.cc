// SPDX-License-Identifier: Apache-2.0
#include "cli/node/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cairn::cli {

int connect_to_node(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(descriptor, generic, sizeof(address)) != 0) {
    const int error = errno;
    ::close(descriptor);
    errno = error;
    return -1;
  }
  return descriptor;
}

bool node_answers(const std::string& socket_path) {
  const int descriptor = connect_to_node(socket_path);
  if (descriptor < 0) return false;
  ::close(descriptor);
  return true;
}

}  // namespace cairn::cli
