// SPDX-License-Identifier: Apache-2.0
#include "service/control/control_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/byte_text.h"
#include "base/check.h"
#include "service/process/local_socket.h"
#include "service/process/log.h"
#include "service/process/thread_start.h"

namespace cairn::node {
namespace {

constexpr std::chrono::milliseconds kRest(50);
constexpr const char* kTooLarge = "a request is larger than the service takes";
constexpr const char* kTooLargeRemedy = "name fewer files at once";
constexpr const char* kFull = "the node has no place for another connection of a command";
constexpr const char* kFullRemedy =
    "end some of the runs and commands that use it; `cairn down` and `cairn drain` get a place "
    "before others";

bool send_whole(int socket, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::send(socket, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

// The path that a socket of the file system is bound to, as an accepted one is to its listener's;
// empty: it is none.
std::string socket_name(int fd) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return address.sun_family == AF_UNIX ? std::string(address.sun_path) : std::string();
}

// The number of a request; 0: it has none.
std::uint64_t number_of(const Json& request) {
  const auto id = request.find("id");
  return id != request.end() && id->is_number_unsigned() ? id->get<std::uint64_t>() : 0;
}

bool is_command(const Json& request, const char* name) {
  const auto command = request.find("command");
  return command != request.end() && *command == name;
}

// Empty: it may be parsed. Walks over a value go as deep on the stack as it is nested.
std::string excess_of(const std::string& line) {
  constexpr int kNestedMax = 100;
  int depth = 0;
  std::size_t values = 1;
  bool is_in_text = false;
  for (std::size_t at = 0; at < line.size() && depth <= kNestedMax; ++at) {
    if (line[at] == '"') is_in_text = !is_in_text;
    if (is_in_text && line[at] == '\\') ++at;
    if (is_in_text) continue;
    if (line[at] == '{' || line[at] == '[') ++depth;
    if (line[at] == '}' || line[at] == ']') --depth;
    if (line[at] == ',' || line[at] == ':' || line[at] == '[') ++values;
  }
  if (depth > kNestedMax) return "the request is not a JSON object";
  return values > ControlServer::kValuesMax ? kTooLarge : "";
}

// Names of files are bytes.
void to_bytes(Json* value) {
  if (value->is_string()) *value = bytes_of_text(value->get_ref<const std::string&>());
  if (!value->is_structured()) return;
  for (Json& part : *value) to_bytes(&part);
}

}  // namespace

std::vector<std::uint64_t> LeftControl::sessions() const {
  std::vector<std::uint64_t> sessions;
  for (const Connection& connection : connections) sessions.push_back(connection.session);
  return sessions;
}

LeftControl find_left_control(const KeptDescriptors& labels, std::span<const int> open) {
  LeftControl left;
  for (const int fd : open) {
    if (labels.of(fd).kind == KeptKind::kControlListener) left.listener = fd;
  }
  const std::string name = socket_name(left.listener);
  for (const int fd : open) {
    const KeptLabel label = labels.of(fd);
    if (label.kind == KeptKind::kControl) left.connections.push_back({fd, label.number});
    if (label.kind == KeptKind::kNone && !name.empty() && socket_name(fd) == name)
      left.connections.push_back({fd, 0});
  }
  return left;
}

bool ControlPeer::send(const Json& line) {
  // File names are bytes, not necessarily UTF-8: what is not becomes a replacement character.
  const auto text_of = [](const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  if (request_ == 0) return send_whole(socket_, text_of(line));
  Json numbered = line;
  numbered["id"] = request_;
  return send_whole(socket_, text_of(numbered));
}

void ControlPeer::fail(const std::string& message, const std::string& remedy) {
  send({{"kind", "error"}, {"message", message}, {"remedy", remedy}});
}

bool ControlPeer::is_gone() const {
  pollfd entry{socket_, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

ControlServer::~ControlServer() { stop(); }

KeptFd ControlServer::labelled(UniqueFd fd, const KeptLabel& label) const {
  return labels_ == nullptr ? KeptFd(std::move(fd)) : KeptFd(std::move(fd), *labels_, label);
}

Status ControlServer::start(const std::string& socket_path) {
  auto listener = listen_at(socket_path, SOCK_STREAM);
  if (!listener) return listener.status();
  listener_ = labelled(std::move(listener.value()), {KeptKind::kControlListener});
  return begin();
}

Status ControlServer::adopt(const LeftControl& left) {
  if (left.listener < 0) return {StatusCode::kInvalid, "no socket for commands was left"};
  listener_ = labelled(UniqueFd(left.listener), {KeptKind::kControlListener});
  CAIRN_RETURN_IF_ERROR(listen_on(listener_.get()));
  for (const std::uint64_t session : left.sessions())
    last_session_ = std::max(last_session_, session);
  for (const LeftControl::Connection& connection : left.connections) {
    const bool is_known = connection.session != 0;
    const std::uint64_t session = is_known ? connection.session : ++last_session_;
    if (!add(UniqueFd(connection.socket), session, true))
      return {StatusCode::kUnavailable, "no thread for a connection that was left"};
  }
  return begin();
}

Status ControlServer::begin() {
  CAIRN_CHECK(!acceptor_.joinable() && !stopping_.load());  // once
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
  stopping_.store(true);
  if (acceptor_.joinable()) {
    wake();
    acceptor_.join();
  }
  {
    std::unique_lock lock(mutex_);
    shut_all(SHUT_RD);
    (void)ended_.wait_for(lock, kAnswerPatience, [this] {
      return std::ranges::all_of(connections_,
                                 [](const Connection& each) { return each.done.load(); });
    });
    shut_all(SHUT_RDWR);
  }
  join_finished(true);
  CAIRN_CHECK(connections_.empty());  // nobody else is left who could add one
}

// Requires: the mutex.
void ControlServer::shut_all(int directions) {
  for (const Connection& connection : connections_)
    (void)::shutdown(connection.socket.get(), directions);
}

void ControlServer::accept_loop() {
  for (;;) {
    pollfd entries[2] = {{listener_.get(), POLLIN, 0}, {wake_event_.get(), POLLIN, 0}};
    // The kernel may lack memory for a moment.
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) std::this_thread::sleep_for(kRest);
    if (stopping_.load()) return;
    if ((entries[1].revents & POLLIN) != 0) {
      std::uint64_t wakes = 0;
      (void)!::read(wake_event_.get(), &wakes, sizeof wakes);
    }
    if ((entries[0].revents & POLLIN) != 0) accept_one();
  }
}

void ControlServer::accept_one() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Peer peer;
  if (!socket || !peer_of(socket.get(), &peer) || peer.uid != ::geteuid()) return;
  join_finished(false);
  if (count() >= kConnectionsMax - kLastPlaces) close_silent();
  if (count() >= kConnectionsMax) return refuse(socket.get());
  (void)add(std::move(socket), ++last_session_, false);
}

std::size_t ControlServer::count() {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

// None of them has a request under way, so their threads end at once.
void ControlServer::close_silent() {
  const auto latest = std::chrono::steady_clock::now() - kSilenceMax;
  std::list<Connection> silent;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = connections_.begin(); entry != connections_.end();) {
      const auto next = std::next(entry);
      Hearing expected = Hearing::kUnheard;
      if (entry->began < latest &&
          entry->hearing.compare_exchange_strong(expected, Hearing::kGivenUp)) {
        (void)::shutdown(entry->socket.get(), SHUT_RDWR);
        silent.splice(silent.end(), connections_, entry);
      }
      entry = next;
    }
  }
  for (Connection& connection : silent) connection.thread.join();
}

void ControlServer::refuse(int socket) {
  ControlPeer(socket).fail(kFull, kFullRemedy);
  if (has_said_full_) return;
  has_said_full_ = true;
  log::warn("all {} places for commands are taken: others are refused", kConnectionsMax);
}

bool ControlServer::add(UniqueFd socket, std::uint64_t session, bool is_adopted) {
  CAIRN_CHECK(session != 0);
  const std::lock_guard lock(mutex_);
  CAIRN_CHECK(connections_.size() <= kConnectionsMax);
  Connection& connection = connections_.emplace_back();
  connection.socket = labelled(std::move(socket), {KeptKind::kControl, session});
  connection.session = session;
  connection.may_begin_cut = is_adopted;
  connection.is_last_place = connections_.size() > kConnectionsMax - kLastPlaces && !is_adopted;
  if (is_adopted) connection.hearing.store(Hearing::kHeard);
  if (start_thread(&connection.thread, [this, &connection] { converse(connection); })) return true;
  ControlPeer(connection.socket.get())
      .fail("the service gets no thread for another connection",
            "end some of your programs, or raise the limit of processes (`ulimit -u`)");
  connections_.pop_back();
  return false;
}

// In front stands the end of a line that the dead service may not have finished.
void ControlServer::say_restarted(int socket) {
  (void)send_whole(socket, std::string(1, kCancel) + "\n" + R"({"kind":"restarted"})" + "\n");
}

void ControlServer::converse(Connection& connection) {
  const int socket = connection.socket.get();
  if (connection.may_begin_cut) say_restarted(socket);
  std::string received;
  // Few requests are longer, and each page that the vector clears costs the connection a fault.
  std::vector<char> buffer(std::size_t{8} << 10);
  for (;;) {
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::size_t searched = received.size();
    received.append(buffer.data(), static_cast<std::size_t>(got));
    if (!take_lines(connection, &received, searched)) break;
  }
  handler_.on_close(connection.session);
  // The peer must see the end of file now, not when the next connection comes.
  ::shutdown(socket, SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  connection.done.store(true);
  ended_.notify_all();
}

// Answers the lines that are whole, and leaves the rest; `searched` bytes have no end of a line.
// False when that rest is too long.
bool ControlServer::take_lines(Connection& connection, std::string* received,
                               std::size_t searched) {
  std::size_t end = 0;
  while ((end = received->find('\n', searched)) != std::string::npos) {
    const std::string line = received->substr(0, end);
    received->erase(0, end + 1);
    searched = 0;
    if (!answer(connection, line)) return false;
  }
  if (received->size() <= kLineBytesMax) return true;
  ControlPeer(connection.socket.get()).fail(kTooLarge, kTooLargeRemedy);
  return false;
}

bool ControlServer::hear(Connection& connection) {
  Hearing expected = Hearing::kUnheard;
  return connection.hearing.compare_exchange_strong(expected, Hearing::kHeard) ||
         expected == Hearing::kHeard;
}

bool ControlServer::may_ask(const Connection& connection, const Json& request) {
  if (!connection.is_last_place) return true;
  return is_command(request, "shutdown") || is_command(request, "drain") ||
         is_command(request, "status");
}

bool ControlServer::answer(Connection& connection, const std::string& line) {
  if (!hear(connection)) return false;
  const std::string excess = excess_of(line);
  Json request = excess.empty() ? Json::parse(line, nullptr, false) : Json();
  if (!request.is_object()) {
    if (connection.may_begin_cut) return true;
    ControlPeer(connection.socket.get())
        .fail(excess.empty() ? "the request is not a JSON object" : excess,
              excess == kTooLarge ? kTooLargeRemedy : "");
    return true;
  }
  connection.may_begin_cut = false;
  const std::uint64_t number = number_of(request);
  // The repetition of one that has been taken in this service's life.
  if (number != 0 && number <= connection.last_request) return true;
  connection.last_request = std::max(connection.last_request, number);
  ControlPeer peer(connection.socket.get(), number);
  if (!may_ask(connection, request)) {
    peer.fail(kFull, kFullRemedy);
    return false;
  }
  to_bytes(&request);
  try {
    handler_.on_request(peer, connection.session, request);
  } catch (const Json::exception& wrong) {
    // A field of another kind than its command takes: the library says so by throwing.
    peer.fail(std::string("the request cannot be understood: ") + wrong.what(), "");
  }
  // A command that watches the node keeps none of the last places from one that ends it.
  return !connection.is_last_place || !is_command(request, "status");
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
