// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/message_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {
namespace {

union ControlBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * kPassedDescriptorsMax)];
};

int set_timeout(int socket, int option, int timeout_ms) {
  const timeval time{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  return static_cast<int>(
      sys::call(SYS_setsockopt, socket, SOL_SOCKET, option, sys::word(&time), sizeof time));
}

bool peer_of(int socket, ucred* peer) {
  socklen_t length = sizeof *peer;
  return sys::call(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, sys::word(peer),
                   sys::word(&length)) == 0;
}

// The listener gets descriptors of this user's files: where the service's directory is gone,
// another user may have put one of their own in its place.
bool is_of_this_user(int socket) {
  ucred peer{};
  return peer_of(socket, &peer) && peer.uid == sys::geteuid();
}

}  // namespace

int connect_seqpacket(const char* path, int floor, int timeout_ms) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  std::strcpy(address.sun_path, path);
  const int low =
      static_cast<int>(sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (low < 0) return low;
  // High at once: between here and the dup another thread sees one number less, as with any
  // library.
  int socket = sys::fcntl(low, F_DUPFD_CLOEXEC, floor);
  if (socket < 0) {
    socket = low;
  } else {
    sys::close(low);
  }
  if (timeout_ms > 0) {
    set_timeout(socket, SO_SNDTIMEO, timeout_ms);
    set_timeout(socket, SO_RCVTIMEO, timeout_ms);
  }
  long result = sys::call(SYS_connect, socket, sys::word(&address), sizeof address);
  if (result == 0 && !is_of_this_user(socket)) result = -EACCES;
  if (result < 0) {
    sys::close(socket);
    return static_cast<int>(result);
  }
  return socket;
}

std::int32_t peer_process(int socket) {
  ucred peer{};
  return peer_of(socket, &peer) ? peer.pid : 0;
}

int send_message(int socket, const void* message, std::size_t size, int fd) {
  CAIRN_DCHECK(socket >= 0);
  iovec part{const_cast<void*>(message), size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ControlBuffer control{};
  if (fd >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  }
  long sent = 0;
  do {
    sent = sys::call(SYS_sendmsg, socket, sys::word(&header), MSG_NOSIGNAL);
  } while (sent == -EINTR);
  if (sent < 0) return static_cast<int>(sent);
  return static_cast<std::size_t>(sent) == size ? 0 : -EMSGSIZE;
}

// Half of what the kernel keeps for the reader is for messages that wait for their place.
static bool has_room_for_hint(int socket) {
  int queued = 0;
  int room = 0;
  socklen_t length = sizeof room;
  return sys::call(SYS_ioctl, socket, SIOCOUTQ, sys::word(&queued)) == 0 &&
         sys::call(SYS_getsockopt, socket, SOL_SOCKET, SO_SNDBUF, sys::word(&room),
                   sys::word(&length)) == 0 &&
         queued < room / 2;
}

int send_hint(int socket, const void* message, std::size_t size) {
  CAIRN_DCHECK(socket >= 0);
  if (!has_room_for_hint(socket)) return -EAGAIN;
  const long sent = sys::call(SYS_sendto, socket, sys::word(message), static_cast<long>(size),
                              MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
  return sent < 0 ? static_cast<int>(sent) : 0;
}

ReceivedMessage receive_message(int socket, void* buffer, std::size_t size) {
  ReceivedMessage received;
  iovec part{buffer, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ControlBuffer control{};
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  // A service that closes a connection with a message unread has the kernel report ECONNRESET here,
  // once, before what the service had answered.
  do {
    received.size = sys::call(SYS_recvmsg, socket, sys::word(&header), MSG_CMSG_CLOEXEC);
  } while (received.size == -EINTR || received.size == -ECONNRESET);
  if (received.size < 0) return received;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count; ++index) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + index * sizeof fd, sizeof fd);
      if (received.descriptor_count == kPassedDescriptorsMax) {
        sys::close(fd);
      } else {
        received.descriptors[received.descriptor_count++] = fd;
      }
    }
  }
  return received;
}

}  // namespace cairn
