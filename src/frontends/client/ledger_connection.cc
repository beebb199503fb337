// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/ledger_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/message_socket.h"
#include "frontends/client/process_page.h"

namespace cairn {
namespace {

constexpr long kAgainPauseNs = 5'000'000;

// A vfork child works on its parent's memory, so what it finds here is its parent's.
std::int32_t own_pid() {
  const std::int32_t pid = process_page.pid.load(std::memory_order_relaxed);
  return pid != 0 ? pid : sys::getpid();
}

int receive_answer(int socket) {
  alignas(protocol::Flushed) char bytes[protocol::kMessageBytesMax];
  const ReceivedMessage received = receive_message(socket, bytes, sizeof bytes);
  for (unsigned index = 0; index < received.descriptor_count; ++index)
    sys::close(received.descriptors[index]);
  if (received.size == -EAGAIN) return -ETIMEDOUT;
  if (received.size < 0) return static_cast<int>(received.size);
  if (received.size == 0) return -ECONNRESET;
  protocol::Flushed answer;
  if (received.size != static_cast<long>(sizeof answer)) return -EPROTO;
  std::memcpy(&answer, bytes, sizeof answer);
  const bool is_answer =
      answer.header.magic == protocol::kMagic && answer.header.type == protocol::Type::kFlushed;
  if (!is_answer || answer.error < 0) return -EPROTO;
  return answer.error > 0 ? -answer.error : static_cast<int>(answer.value & O_APPEND);
}

}  // namespace

int LedgerConnection::tell_unserved(const char* socket_path,
                                    const protocol::UnservedMessage& message) {
  return ask(socket_path, message, -1);
}

int LedgerConnection::keep_through(const char* socket_path,
                                   const protocol::UnservedMessage& message, int fd) {
  return ask(socket_path, message, fd);
}

int LedgerConnection::ask(const char* socket_path, const protocol::UnservedMessage& message,
                          int fd) {
  LocalGuard guard(process_lock(ProcessLock::kLedger));
  const bool had_one = socket_ >= 0;
  int result = ask_once(socket_path, message, fd);
  // The service may have closed it after the last answer.
  if (had_one && (result == -EPIPE || result == -ECONNRESET))
    result = ask_once(socket_path, message, fd);
  const std::int64_t end_ns = monotonic_ns() + kAnswerMs * std::int64_t{1'000'000};
  while (result == -EAGAIN && monotonic_ns() < end_ns) {
    const timespec pause{0, kAgainPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    result = ask_once(socket_path, message, fd);
    if (result == -EPIPE || result == -ECONNRESET) result = -EAGAIN;
  }
  return result == -EAGAIN ? -EMFILE : result;
}

// Requires: the lock. -EAGAIN: the service had no number for the descriptor, and has another one
// soon.
int LedgerConnection::ask_once(const char* socket_path, const protocol::UnservedMessage& message,
                               int fd) {
  const int socket = connected(socket_path);
  if (socket < 0) return socket;
  int result = send_message(socket, &message, sizeof message, fd);
  if (result == -EAGAIN) result = -ETIMEDOUT;
  if (result == 0) result = receive_answer(socket);
  // An answer that comes too late would be taken for that to the next question. What the service
  // has taken down for this connection it keeps until the process ends.
  const bool is_lost =
      result == -ETIMEDOUT || result == -EPROTO || result == -ECONNRESET || result == -EPIPE;
  if (socket != socket_) {
    if (result < 0) sys::close(socket);  // a vfork child's, which nothing depends on yet
  } else if (is_lost) {
    sys::close(std::exchange(socket_, -1));
  }
  return result;
}

// Requires: the lock.
int LedgerConnection::connected(const char* socket_path) {
  if (socket_ >= 0 && pid_ == own_pid() && is_one(socket_, socket_path)) return socket_;
  const int made = connect_seqpacket(socket_path, descriptor_floor(), kAnswerMs);
  if (made < 0) return made == -EAGAIN ? -ETIMEDOUT : made;
  sys::fcntl(made, F_SETFD, 0);
  // A vfork child has descriptors of its own: this one is left to what it starts.
  if (is_vfork_child()) return made;
  socket_ = made;
  pid_ = own_pid();
  CAIRN_DCHECK(socket_ >= 0 && pid_ > 0);
  return made;
}

bool LedgerConnection::is_one(int fd, const char* socket_path) {
  sockaddr_un peer{};
  socklen_t length = sizeof peer;
  if (sys::call(SYS_getpeername, fd, sys::word(&peer), sys::word(&length)) < 0) return false;
  return peer.sun_family == AF_UNIX &&
         std::strncmp(peer.sun_path, socket_path, sizeof peer.sun_path) == 0;
}

void LedgerConnection::tell_inherited() const {
  protocol::Header header;
  header.type = protocol::Type::kInherited;
  if (socket_ >= 0) (void)send_message(socket_, &header, sizeof header, -1);
}

void LedgerConnection::take_over(int fd) {
  protocol::Header header;
  header.type = protocol::Type::kTakenOver;
  (void)send_message(fd, &header, sizeof header, -1);
  sys::close(fd);
}

}  // namespace cairn
