// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/ledger_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
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

struct Question {
  const char* socket_path;
  const protocol::UnservedMessage& message;
  int fd;
};

// -EAGAIN: the service had no number for the descriptor, and has another one soon.
int ask_once(int& socket, const Question& question) {
  if (socket < 0 || !LedgerConnection::is_one(socket, question.socket_path)) {
    const int made =
        connect_seqpacket(question.socket_path, descriptor_floor(), LedgerConnection::kAnswerMs);
    if (made < 0) return made == -EAGAIN ? -ETIMEDOUT : made;
    sys::fcntl(made, F_SETFD, 0);
    socket = made;
  }
  int result = send_message(socket, &question.message, sizeof question.message, question.fd);
  if (result == -EAGAIN) result = -ETIMEDOUT;
  if (result == 0) result = receive_answer(socket);
  // An answer that comes too late would be taken for that to the next question. What the service
  // has taken down for this connection it keeps until the process ends.
  const bool is_lost =
      result == -ETIMEDOUT || result == -EPROTO || result == -ECONNRESET || result == -EPIPE;
  if (is_lost) sys::close(std::exchange(socket, -1));
  return result;
}

int ask_patiently(int& socket, const Question& question) {
  const bool had_one = socket >= 0;
  int result = ask_once(socket, question);
  // The service may have closed it after the last answer.
  if (had_one && (result == -EPIPE || result == -ECONNRESET)) result = ask_once(socket, question);
  const std::int64_t end_ns =
      monotonic_ns() + LedgerConnection::kAnswerMs * std::int64_t{1'000'000};
  while (result == -EAGAIN && monotonic_ns() < end_ns) {
    const timespec pause{0, kAgainPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    result = ask_once(socket, question);
    if (result == -EPIPE || result == -ECONNRESET) result = -EAGAIN;
  }
  return result == -EAGAIN ? -EMFILE : result;
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
  if (is_vfork_child()) return ask_in_child(socket_path, message, fd);
  LocalGuard guard(process_lock(ProcessLock::kLedger));
  // One that a fork brought stays open, for as long as this process may have the files open.
  Connection mine = own_.pid == own_pid() ? own_ : Connection{-1, own_pid()};
  const int result = ask_patiently(mine.socket, {socket_path, message, fd});
  if (own_.pid == mine.pid || mine.socket >= 0) own_ = mine;
  return result;
}

// Without the lock, which a child that is killed would leave to its parent.
int LedgerConnection::ask_in_child(const char* socket_path,
                                   const protocol::UnservedMessage& message, int fd) {
  CAIRN_DCHECK(fd >= 0 || message.header.type == protocol::Type::kUnserved);
  ChildConnection* const known = claim_for_child();
  int socket = known != nullptr ? known->socket.load(std::memory_order_relaxed) : -1;
  const int result = ask_patiently(socket, {socket_path, message, fd});
  if (known != nullptr) known->socket.store(socket, std::memory_order_relaxed);
  return result;
}

LedgerConnection::ChildConnection* LedgerConnection::claim_for_child() {
  const std::int32_t self = sys::getpid();
  for (ChildConnection& child : of_children_) {
    if (child.pid.load(std::memory_order_acquire) == self) return &child;
  }
  has_children_.store(true, std::memory_order_relaxed);
  for (ChildConnection& child : of_children_) {
    std::int32_t holder = child.pid.load(std::memory_order_acquire);
    if (holder != 0 && sys::call(SYS_kill, holder, 0) != -ESRCH) continue;
    if (!child.pid.compare_exchange_strong(holder, self)) continue;
    child.socket.store(-1, std::memory_order_relaxed);
    return &child;
  }
  return nullptr;
}

bool LedgerConnection::owns(int fd, const char* socket_path) const {
  if (fd < 0) return false;
  if (fd == own_.socket) return true;
  if (!has_children_.load(std::memory_order_relaxed)) return false;
  // Also in a process that a vfork child makes, and there under another number than the child's.
  const bool is_likely =
      std::any_of(of_children_.begin(), of_children_.end(), [fd](const ChildConnection& child) {
        return child.socket.load(std::memory_order_relaxed) == fd;
      });
  return is_likely && is_one(fd, socket_path);
}

int LedgerConnection::highest_descriptor() const {
  int highest = own_.socket;
  if (!has_children_.load(std::memory_order_relaxed)) return highest;
  for (const ChildConnection& child : of_children_)
    highest = std::max(highest, child.socket.load(std::memory_order_relaxed));
  return highest;
}

bool LedgerConnection::move_away_from(int fd) {
  if (fd < 0 || fd != own_.socket) return false;
  const int moved = sys::fcntl(fd, F_DUPFD, fd + 1);
  if (moved >= 0) own_.socket = moved;
  return moved >= 0;
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
  if (own_.socket >= 0) (void)send_message(own_.socket, &header, sizeof header, -1);
}

void LedgerConnection::take_over(int fd) {
  protocol::Header header;
  header.type = protocol::Type::kTakenOver;
  (void)send_message(fd, &header, sizeof header, -1);
  sys::close(fd);
}

}  // namespace cairn
