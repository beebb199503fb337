// SPDX-License-Identifier: Apache-2.0
#include "service/process/local_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"

namespace cairn::node {
namespace {

constexpr int kBacklog = 512;

}  // namespace

Result<UniqueFd> listen_at(const std::string& path, int type, NamesSenders senders) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(StatusCode::kInvalid,
                  "the socket path " + path + " is too long: set CAIRN_RUN_ROOT");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Status::from_errno(errno, "cannot create a socket");
  const int on = senders == NamesSenders::kYes ? 1 : 0;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return Status::from_errno(errno, "cannot set up a socket");
  ::unlink(path.c_str());
  // Born with the mode that the descriptor has, whatever the process's mask is (unix(7)).
  if (::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Status::from_errno(errno, "cannot bind " + path);
  if (::listen(socket.get(), kBacklog) != 0)
    return Status::from_errno(errno, "cannot listen at " + path);
  return socket;
}

Status listen_on(int socket) {
  if (::listen(socket, kBacklog) == 0) return Status::ok();
  return Status::from_errno(errno, "cannot listen on");
}

bool peer_of(int socket, Peer* peer) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  CAIRN_CHECK(length == sizeof credentials);
  *peer = Peer{credentials.pid, credentials.uid};
  return true;
}

}  // namespace cairn::node
