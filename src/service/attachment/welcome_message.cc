// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/welcome_message.h"

#include <sys/socket.h>

#include <cstring>

#include "base/check.h"
#include "frontends/protocol/protocol.h"

namespace cairn::node {

bool send_welcome(const NodeMemory& memory, Owner owner, int socket) {
  protocol::Welcome welcome;
  welcome.slot = owner.slot();
  welcome.generation = owner.generation();
  welcome.shape = memory.shape();
  int fds[1 + kTiersMax];
  unsigned count = 0;
  fds[count++] = memory.control().fd();
  fds[count++] = memory.data().fd();
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (welcome.shape.tier_bytes[tier] != 0)
      fds[count++] = memory.tier(static_cast<TierId>(tier)).on_device({}).descriptor;
  }
  CAIRN_CHECK(count <= 1 + kTiersMax);
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(item), fds, sizeof(int) * count);
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

}  // namespace cairn::node
