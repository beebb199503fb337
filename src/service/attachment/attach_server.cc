// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/attach_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/descriptor_shortage.h"
#include "service/attachment/memory_notice_file.h"
#include "service/process/local_socket.h"

namespace cairn::node {
namespace {

// What an epoll event speaks of: the kind in the top byte, a number below.
constexpr unsigned kKindShift = 56;
enum class Kind : std::uint64_t { kListener = 1, kStop, kConnection, kProcess, kClaims };
constexpr std::uint64_t token(Kind kind, std::uint64_t number = 0) {
  return static_cast<std::uint64_t>(kind) << kKindShift | number;
}

bool add_to_epoll(int epoll, int fd, std::uint64_t data) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = data;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void take_wakes(int event) {
  std::uint64_t wakes = 0;
  (void)!::read(event, &wakes, sizeof wakes);
}

void wake(int event) {
  const std::uint64_t one = 1;
  (void)!::write(event, &one, sizeof one);
}

// How long messages of a resting connection may wait. A drain and Flusher::flush_now() wait for
// them.
constexpr int kRestMs = 1;

// Without input a connection still tells when it is closed.
bool watch_input(int epoll, int fd, std::uint64_t connection, bool wanted) {
  epoll_event event{};
  event.events = wanted ? std::uint32_t{EPOLLIN} : 0;
  event.data.u64 = token(Kind::kConnection, connection);
  return ::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0;
}

// Others have their turn after so many messages of one connection: what a socket holds of a process
// that has died is less.
constexpr int kMessagesPerTurn = 1024;

}  // namespace

AttachServer::AttachServer(const Parts& parts)
    : memory_(parts.memory),
      clients_(parts.clients),
      files_(parts.files),
      unserved_(parts.unserved),
      events_(parts.events),
      labels_(parts.labels),
      processes_(parts.clients, parts.unserved, parts.events, parts.labels,
                 [this](int pidfd, pid_t pid) {
                   return add_to_epoll(epoll_.get(), pidfd,
                                       token(Kind::kProcess, static_cast<std::uint64_t>(pid)));
                 }),
      lost_(parts.memory, parts.clients.descriptors(), parts.files) {}

AttachServer::~AttachServer() { stop(); }

std::uint64_t AttachServer::connection_token(std::uint64_t id) {
  return token(Kind::kConnection, id);
}

Status AttachServer::start(const std::string& socket_path) {
  // Before anybody can connect, so that no process finds an older node's notice.
  write_notice(memory_, socket_path, events_);
  auto listener = listen_at(socket_path, SOCK_SEQPACKET, NamesSenders::kYes);
  if (!listener) return listener.status();
  CAIRN_RETURN_IF_ERROR(begin(socket_path, std::move(listener.value())));
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

Status AttachServer::begin(const std::string& socket_path, UniqueFd listener) {
  listener_ = KeptFd(std::move(listener), labels_, {KeptKind::kClientListener});
  socket_path_ = socket_path;
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  claims_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !stop_event_ || !claims_event_ ||
      !add_to_epoll(epoll_.get(), claims_event_.get(), token(Kind::kClaims)) ||
      !add_to_epoll(epoll_.get(), listener_.get(), token(Kind::kListener)) ||
      !add_to_epoll(epoll_.get(), stop_event_.get(), token(Kind::kStop))) {
    return Status::from_errno(errno, "cannot watch for clients");
  }
  clients_.set_claims_reader([this] { wake(claims_event_.get()); });
  return Status::ok();
}

// The listener keeps its number, so that the thread notices nothing but the next connection.
Status AttachServer::listen_again(const std::string& socket_path) {
  write_notice(memory_, socket_path, events_);
  const auto listener = listen_at(socket_path, SOCK_SEQPACKET, NamesSenders::kYes);
  if (!listener) return listener.status();
  if (::dup3(listener.value().get(), listener_.get(), O_CLOEXEC) < 0 ||
      !add_to_epoll(epoll_.get(), listener_.get(), token(Kind::kListener)))
    return Status::from_errno(errno, "cannot listen again at " + socket_path);
  return Status::ok();
}

void AttachServer::stop() {
  if (!thread_.joinable()) return;
  clients_.set_claims_reader({});
  wake(stop_event_.get());
  thread_.join();
  // The name goes before the socket: a client that finds a name without a listener takes the
  // service for dead.
  remove_notice(socket_path_);
  ::unlink(socket_path_.c_str());
}

// How soon is looked again at what nobody tells of.
constexpr int kSoonMs = 5;

int AttachServer::wait_ms() const {
  constexpr int kClaimsMs = 50;
  if (!resting_.empty()) return kRestMs;
  if (processes_.has_orphans() || lost_.any() || !is_listening_) return kSoonMs;
  if (has_claims_) return kClaimsMs;
  return processes_.has_unwatched() ? ProcessWatch::kLookMs : -1;
}

void AttachServer::run() {
  constexpr int kEventsMax = 64;
  epoll_event events[kEventsMax];
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events, kEventsMax, wait_ms());
    // Connections before processes: the last messages of the dead are read before their death is
    // dealt with.
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) serve_resting();
      for (int at = 0; at < count; ++at) {
        const std::uint64_t data = events[at].data.u64;
        const auto kind = static_cast<Kind>(data >> kKindShift);
        const std::uint64_t number = data & ((std::uint64_t{1} << kKindShift) - 1);
        if (kind == Kind::kStop) return;
        if ((kind == Kind::kProcess) != (pass == 1)) continue;
        if (kind == Kind::kListener) (void)accept_all();
        if (kind == Kind::kClaims) take_wakes(claims_event_.get());
        if (kind == Kind::kConnection) serve_connection(number);
        if (kind == Kind::kProcess) processes_.ended(static_cast<pid_t>(number));
      }
    }
    if (processes_.has_orphans()) processes_.check_orphans();
    if (processes_.has_unwatched()) processes_.check_unwatched();
    if (lost_.any()) try_lost_again();
    if (!is_listening_) try_to_listen();
    read_claims();
  }
}

// A process greets before it takes a slot. So a taken slot is nobody's only when all that have
// connected are let in and all that they have sent is read; while that cannot be, it is waited for.
void AttachServer::read_claims() {
  for (unsigned round = 0;; ++round) {
    has_claims_ = clients_.has_claims_to_read();
    if (!has_claims_ || round == ClientTable::kRoundsOfClaims) return;
    if (!is_listening_ || !accept_all()) return;
    serve_silent(std::nullopt);
    if (clients_.end_claims_round()) events_.on_claims_settled();
  }
}

void AttachServer::listen(bool wanted) {
  epoll_event event{};
  event.events = wanted ? std::uint32_t{EPOLLIN} : 0;
  event.data.u64 = token(Kind::kListener);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event) == 0)
    is_listening_ = wanted;
}

// Claimants have paid for their numbers with the offers.
bool AttachServer::can_accept() const {
  return clients_.descriptors().can_take_connection(clients_.has_claims_to_read());
}

void AttachServer::try_to_listen() {
  if (monotonic_ns() < listen_at_ns_) return;
  if (!can_accept()) close_silent();
  if (can_accept()) listen(true);
}

// A client greets as soon as it has connected, and owns nothing before its greeting.
void AttachServer::close_silent() {
  constexpr std::int64_t kSilentNanos = 1'000'000'000;
  serve_silent(std::nullopt);
  const std::int64_t now = monotonic_ns();
  for (const std::uint64_t id : std::exchange(silent_, {})) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.owner || found->second.is_ledger) continue;
    if (now - found->second.accepted_ns < kSilentNanos || can_accept()) {
      silent_.push_back(id);
    } else {
      close_connection(id);
    }
  }
}

bool AttachServer::accept_all() {
  while (can_accept()) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int error = errno;
      if (is_short_of_descriptors(error) || error == ENOBUFS) {
        // The numbers that are free here say nothing of what the machine lacks.
        listen_at_ns_ = monotonic_ns() + kSoonMs * std::int64_t{1'000'000};
        listen(false);
      }
      return error == EAGAIN;
    }
    accepted(std::move(socket));
  }
  listen(false);
  return false;
}

void AttachServer::accepted(UniqueFd socket) {
  Peer peer;
  if (!peer_of(socket.get(), &peer) || peer.uid != ::geteuid() || peer.pid <= 0) return;
  const std::uint64_t id = next_connection_++;
  Connection connection;
  // A client takes a closed connection for the service's death: one that cannot be watched stays.
  connection.is_resting = !add_to_epoll(epoll_.get(), socket.get(), token(Kind::kConnection, id));
  if (connection.is_resting) resting_.push_back(id);
  connection.socket = labelled(std::move(socket), {});
  CAIRN_CRASH_POINT("attach.accepted");
  connection.pid = peer.pid;
  connection.accepted_ns = monotonic_ns();
  connections_.emplace(id, std::move(connection));
  serve_silent(peer.pid);
  // Hello is often here already.
  serve_connection(id);
  if (connections_.contains(id) && !connections_[id].owner) silent_.push_back(id);
}

// An image that has taken its slot by itself may be followed by another one at once, whose greeting
// must be read later. The image has sent its own before the next one connected.
void AttachServer::serve_silent(std::optional<pid_t> pid) {
  std::vector<std::uint64_t> of_process;
  std::erase_if(silent_, [&](std::uint64_t id) {
    const auto found = connections_.find(id);
    const bool is_silent =
        found != connections_.end() && !found->second.owner && !found->second.is_ledger;
    if (is_silent && (!pid || found->second.pid == *pid)) of_process.push_back(id);
    return !is_silent;
  });
  for (const std::uint64_t id : of_process) serve_connection(id);
}

void AttachServer::serve_greeted(pid_t pid) {
  std::vector<std::uint64_t> of_process;
  for (const auto& [id, connection] : connections_) {
    if (connection.pid == pid && connection.owner) of_process.push_back(id);
  }
  for (const std::uint64_t id : of_process) serve_connection(id);
}

void AttachServer::rest(std::uint64_t id, Connection& connection) {
  if (connection.is_resting || !watch_input(epoll_.get(), connection.socket->get(), id, false))
    return;
  connection.is_resting = true;
  resting_.push_back(id);
}

// A connection that has sent nothing since the last look wakes this thread again.
void AttachServer::serve_resting() {
  // A greeting may have other connections of its process served, which rest then.
  for (const std::uint64_t id : std::exchange(resting_, {})) {
    const std::uint64_t before = descriptors_received_;
    serve_connection(id);
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    found->second.is_resting = descriptors_received_ != before ||
                               !watch_input(epoll_.get(), found->second.socket->get(), id, true);
    if (found->second.is_resting) resting_.push_back(id);
  }
}

void AttachServer::serve_connection(std::uint64_t id) {
  for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    // A greeting and a question stay in the socket until they are answered, so that no death loses
    // them; a ledger's question has a note instead. A death may lose what an attached process says,
    // but for descriptors, which are the successor's as well.
    const bool is_peeked = !connection.owner;
    Datagram datagram;
    const Received received = receive_datagram(connection.socket->get(), connection.pid,
                                               is_peeked ? Look::kPeek : Look::kTake, &datagram);
    if (received == Received::kNothing) return;
    if (received == Received::kDatagram && take(id, connection, is_peeked, std::move(datagram)))
      continue;
    return close_connection(id);
  }
}

bool AttachServer::take(std::uint64_t id, Connection& connection, bool is_peeked,
                        Datagram datagram) {
  const SharedFd socket = connection.socket;
  const bool is_hello = is_peeked && is_greeting(datagram);
  const bool stays = is_hello || (is_peeked && is_question(datagram));
  if (is_peeked && asks_ledger(datagram)) labels_.note_asked(socket->get(), true);
  if (is_peeked && !stays) drop_datagram(socket->get());
  const bool goes_on =
      handle(id, connection,
             decode(std::move(datagram), memory_.objects(), memory_.descriptions().capacity()));
  CAIRN_CRASH_POINT("attach.greeting-answered");
  // A question is its Asker's from here on.
  if (is_hello || (stays && connections_.contains(id))) drop_datagram(socket->get());
  return goes_on;
}

void AttachServer::close_connection(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection connection = std::move(found->second);
  connections_.erase(found);
  // The kernel forgets it by itself only when nobody else shares it.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket->get(), nullptr);
  connection.socket.reset();
  if (connection.owner) processes_.disconnected(connection.pid, connection.owner);
  if (!connection.is_ledger) return;
  if (unserved_.hung_up(id)) events_.on_ledger_over();
  // A process that closes its connection and lives on is watched with the number that is free now.
  if (!processes_.notice_end_of(connection.pid, std::move(connection.room)))
    processes_.ended(connection.pid);
}

// Returns false when the connection is to be closed: never that of an attached process for what it
// says, because its end would mean that the service has died (frontends/client/dead_service.h), and
// no ledger's, because its files would come back into the buffers.
bool AttachServer::handle(std::uint64_t id, Connection& connection, ClientMessage message) {
  return std::visit(
      [&](auto&& each) { return act(id, connection, std::forward<decltype(each)>(each)); },
      std::move(message));
}

}  // namespace cairn::node
