// SPDX-License-Identifier: Apache-2.0
// The service's UNIX sockets: private to the user by mode and by the peer's credentials (rule 10).
//
// Thread safety: stateless functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// Whether the kernel names the sender of each message. That is not always the process that has made
// the connection, since a vfork child sends over its parent's. Set on the listener, it holds for
// what is sent before a connection is accepted, too.
enum class NamesSenders : std::uint8_t { kNo, kYes };

// Listens at `path` with mode 0600; a stale socket there is replaced. `type`: SOCK_SEQPACKET or
// SOCK_STREAM.
Result<UniqueFd> listen_at(const std::string& path, int type,
                           NamesSenders senders = NamesSenders::kNo);
// Listens on at a socket that listen_at() of another process has made; clients that connect from
// now on learn that it is this one's.
Status listen_on(int socket);

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};
// Returns false when the kernel does not know the peer.
bool peer_of(int socket, Peer* peer);

}  // namespace cairn::node
