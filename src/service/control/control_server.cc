// SPDX-License-Identifier: Apache-2.0
#include "service/control/control_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "service/process/local_socket.h"

namespace cairn::node {

bool ControlPeer::send(const Json& line) {
  // File names are bytes, not necessarily UTF-8: what is not becomes a replacement character.
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::send(socket_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

void ControlPeer::fail(const std::string& message, const std::string& remedy) {
  send({{"kind", "error"}, {"message", message}, {"remedy", remedy}});
}

bool ControlPeer::is_gone() const {
  pollfd entry{socket_, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

ControlServer::~ControlServer() { stop(); }

Status ControlServer::start(const std::string& socket_path) {
  CAIRN_CHECK(!acceptor_.joinable() && !stopping_.load());  // started once
  auto listener = listen_at(socket_path, SOCK_STREAM);
  if (!listener) return listener.status();
  listener_ = std::move(listener.value());
  wake_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_) return Status::from_errno(errno, "cannot create an event");
  acceptor_ = std::thread([this] { accept_loop(); });
  return Status::ok();
}

// The listener keeps its number; the acceptor begins to wait for it anew.
Status ControlServer::listen_again(const std::string& socket_path) {
  CAIRN_CHECK(listener_.get() >= 0);
  const auto listener = listen_at(socket_path, SOCK_STREAM);
  if (!listener) return listener.status();
  if (::dup3(listener.value().get(), listener_.get(), O_CLOEXEC) < 0)
    return Status::from_errno(errno, "cannot listen again at " + socket_path);
  wake();
  return Status::ok();
}

void ControlServer::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_event_.get(), &one, sizeof one);
}

void ControlServer::stop() {
  if (!acceptor_.joinable()) return;
  stopping_.store(true);
  wake();
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RD);
  }
  join_finished(true);
  CAIRN_CHECK(connections_.empty());  // nobody else is left who could add one
}

void ControlServer::accept_loop() {
  std::uint64_t session = 0;
  for (;;) {
    pollfd entries[2] = {{listener_.get(), POLLIN, 0}, {wake_event_.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (stopping_.load()) return;
    if ((entries[1].revents & POLLIN) != 0) {
      std::uint64_t wakes = 0;
      (void)!::read(wake_event_.get(), &wakes, sizeof wakes);
    }
    if ((entries[0].revents & POLLIN) == 0) continue;
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Peer peer;
    if (!socket || !peer_of(socket.get(), &peer) || peer.uid != ::geteuid()) continue;
    join_finished(false);
    const std::lock_guard lock(mutex_);
    CAIRN_CHECK(connections_.size() <= kConnectionsMax);
    if (connections_.size() == kConnectionsMax) continue;
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    const std::uint64_t id = ++session;
    connection.thread = std::thread([this, &connection, id] { converse(connection, id); });
  }
}

void ControlServer::converse(Connection& connection, std::uint64_t session) {
  std::string received;
  // Few requests are longer, and each page that the vector clears costs the connection a fault.
  std::vector<char> buffer(std::size_t{8} << 10);
  for (;;) {
    const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    std::size_t searched = received.size();
    received.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t end = 0;
    while ((end = received.find('\n', searched)) != std::string::npos) {
      const std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      searched = 0;
      answer(connection, session, line);
    }
    if (received.size() > kLineBytesMax) {
      ControlPeer(connection.socket.get())
          .send({{"kind", "error"},
                 {"message", "a request is larger than the service takes"},
                 {"remedy", "name fewer files at once"}});
      break;
    }
  }
  handler_.on_close(session);
  // The peer must see the end of file now, not when the next connection comes.
  ::shutdown(connection.socket.get(), SHUT_RDWR);
  connection.done.store(true);
}

void ControlServer::answer(Connection& connection, std::uint64_t session, const std::string& line) {
  ControlPeer peer(connection.socket.get());
  const Json request = Json::parse(line, nullptr, false);
  if (!request.is_object()) {
    peer.send({{"kind", "error"}, {"message", "the request is not a JSON object"}, {"remedy", ""}});
    return;
  }
  try {
    handler_.on_request(peer, session, request);
  } catch (const Json::exception& wrong) {
    // A field of another kind than its command takes: the library says so by throwing.
    peer.fail(std::string("the request cannot be understood: ") + wrong.what(), "");
  }
}

void ControlServer::join_finished(bool all) {
  std::list<Connection> finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = connections_.begin(); entry != connections_.end();) {
      const auto next = std::next(entry);
      if (all || entry->done.load()) finished.splice(finished.end(), connections_, entry);
      entry = next;
    }
  }
  for (Connection& connection : finished) {
    CAIRN_CHECK(all || connection.done.load());
    connection.thread.join();
  }
}

}  // namespace cairn::node
