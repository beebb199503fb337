// SPDX-License-Identifier: Apache-2.0
#include "node/attach_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "node/local_socket.h"
#include "node/process_image.h"

namespace cairn::node {
namespace {

using protocol::Type;

// What an epoll event speaks of: the kind in the top byte, a number below.
constexpr unsigned kKindShift = 56;
enum class Kind : std::uint64_t { kListener = 1, kStop, kConnection, kProcess };
constexpr std::uint64_t token(Kind kind, std::uint64_t number = 0) {
  return static_cast<std::uint64_t>(kind) << kKindShift | number;
}

constexpr message::Malformed kTooEarly{"a message before its greeting"};
constexpr message::Malformed kOneWay{"a request on a connection of another kind"};

// A dying process closes its sockets a moment before its pidfd tells.
constexpr std::int64_t kOrphanCheckNanos = 20'000'000;

bool add_to_epoll(int epoll, int fd, std::uint64_t data) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = data;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// How long what a resting connection sends may wait. Whoever needs it earlier waits for it (drain,
// Flusher::flush_now).
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

AttachServer::AttachServer(const NodeMemory& memory, ClientTable& clients, StoreFiles& files,
                           UnservedFiles& unserved, AttachEvents& events)
    : memory_(memory), clients_(clients), files_(files), unserved_(unserved), events_(events) {}

AttachServer::~AttachServer() { stop(); }

Status AttachServer::start(const std::string& socket_path) {
  auto listener = listen_at(socket_path, SOCK_SEQPACKET);
  if (!listener) return listener.status();
  listener_ = std::move(listener.value());
  socket_path_ = socket_path;
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !stop_event_ ||
      !add_to_epoll(epoll_.get(), listener_.get(), token(Kind::kListener)) ||
      !add_to_epoll(epoll_.get(), stop_event_.get(), token(Kind::kStop))) {
    return Status::from_errno(errno, "cannot watch for clients");
  }
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

// The listener keeps its number, so that the thread notices nothing but the next connection.
Status AttachServer::listen_again(const std::string& socket_path) {
  const auto listener = listen_at(socket_path, SOCK_SEQPACKET);
  if (!listener) return listener.status();
  if (::dup3(listener.value().get(), listener_.get(), O_CLOEXEC) < 0 ||
      !add_to_epoll(epoll_.get(), listener_.get(), token(Kind::kListener)))
    return Status::from_errno(errno, "cannot listen again at " + socket_path);
  return Status::ok();
}

void AttachServer::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_event_.get(), &one, sizeof one);
  thread_.join();
  // The name goes before the socket: who finds a name that nobody listens at takes the service for
  // dead.
  ::unlink(socket_path_.c_str());
}

void AttachServer::run() {
  constexpr int kEventsMax = 64;
  epoll_event events[kEventsMax];
  for (;;) {
    const bool is_waiting = !orphans_.empty() || !losses_.empty() || !is_listening_;
    const int waiting_ms = is_waiting ? 5 : -1;
    const int timeout_ms = resting_.empty() ? waiting_ms : kRestMs;
    const int count = ::epoll_wait(epoll_.get(), events, kEventsMax, timeout_ms);
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
        if (kind == Kind::kListener) accept_all();
        if (kind == Kind::kConnection) serve_connection(number);
        if (kind == Kind::kProcess) process_ended(static_cast<pid_t>(number));
      }
    }
    if (!orphans_.empty()) check_orphans();
    if (!losses_.empty()) tell_losses();
    if (!is_listening_) listen(true);
  }
}

void AttachServer::listen(bool wanted) {
  epoll_event event{};
  event.events = wanted ? std::uint32_t{EPOLLIN} : 0;
  event.data.u64 = token(Kind::kListener);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event) == 0)
    is_listening_ = wanted;
}

void AttachServer::accept_all() {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) listen(false);
      return;
    }
    Peer peer;
    if (!peer_of(socket.get(), &peer) || peer.uid != ::geteuid() || peer.pid <= 0) continue;
    const int on = 1;
    // A vfork child sends over its parent's connection: the kernel names the sender of each
    // message.
    ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    const std::uint64_t id = next_connection_++;
    if (!add_to_epoll(epoll_.get(), socket.get(), token(Kind::kConnection, id))) continue;
    Connection connection;
    connection.socket = std::move(socket);
    connection.pid = peer.pid;
    connections_.emplace(id, std::move(connection));
    // Hello is often here already.
    serve_connection(id);
  }
}

void AttachServer::rest(std::uint64_t id, Connection& connection) {
  if (connection.is_resting || !watch_input(epoll_.get(), connection.socket.get(), id, false))
    return;
  connection.is_resting = true;
  resting_.push_back(id);
}

// Who has sent nothing since the last look wakes this thread again.
void AttachServer::serve_resting() {
  std::erase_if(resting_, [this](std::uint64_t id) {
    const std::uint64_t before = descriptors_received_;
    serve_connection(id);
    const auto found = connections_.find(id);
    if (found == connections_.end()) return true;
    if (descriptors_received_ != before) return false;
    found->second.is_resting = !watch_input(epoll_.get(), found->second.socket.get(), id, true);
    return !found->second.is_resting;
  });
}

void AttachServer::serve_connection(std::uint64_t id) {
  for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Datagram datagram;
    const Received received =
        receive_datagram(found->second.socket.get(), found->second.pid, &datagram);
    if (received == Received::kNothing) return;
    if (received == Received::kDatagram &&
        handle(id, found->second,
               decode(std::move(datagram), memory_.objects(), memory_.descriptions().capacity())))
      continue;
    const auto still = connections_.find(id);
    if (still == connections_.end()) return;
    closed(id, still->second);
    connections_.erase(still);
    return;
  }
}

void AttachServer::closed(std::uint64_t id, const Connection& connection) {
  if (connection.owner) {
    orphans_.push_back(
        Orphan{connection.pid, connection.owner, monotonic_ns() + kOrphanCheckNanos});
  }
  if (connection.is_ledger && unserved_.hung_up(id)) events_.on_ledger_over();
}

// Returns false when the connection is to be closed: never that of an attached process for what it
// says, because its end would mean that the service has died (client/dead_service.h), and no
// ledger's, because its files would come back into the buffers.
bool AttachServer::handle(std::uint64_t id, Connection& connection, ClientMessage message) {
  return std::visit(
      [&](auto&& each) { return act(id, connection, std::forward<decltype(each)>(each)); },
      std::move(message));
}

bool AttachServer::act(std::uint64_t, Connection& connection, message::Malformed what) {
  if (!connection.has_erred) {
    events_.log("process " + std::to_string(connection.pid) + " has sent " + what.reason +
                ": left out, as all that follows of this kind");
    connection.has_erred = true;
  }
  if (connection.owner || connection.is_ledger) return true;
  if (what.is_of_another_version) {
    return refuse(connection, UnservedReason::kOtherVersion,
                  "this node runs Cairn " CAIRN_VERSION
                  ", the program was started with another version");
  }
  return refuse(connection, UnservedReason::kFailed,
                std::string("the node does not understand ") + what.reason);
}

bool AttachServer::act(std::uint64_t, Connection& connection, message::Hello hello) {
  return welcome(connection, hello);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Discarded discarded) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  events_.on_discarded(discarded.object);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Inherited) {
  if (!connection.owner && !connection.is_ledger) return act(id, connection, kTooEarly);
  inherited(connection);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Foreign foreign) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  note_foreign(ForeignProgram{foreign.sender, connection.run, std::move(foreign.command),
                              std::move(foreign.reason)});
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Flush flush) {
  if (connection.owner || connection.is_ledger) return act(id, connection, kOneWay);
  events_.on_flush_request(give_away(id, connection), flush.object, flush.durable);
  return false;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Sync sync) {
  if (connection.owner || connection.is_ledger) return act(id, connection, kOneWay);
  events_.on_sync_request(give_away(id, connection), sync.device);
  return false;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::MeetUnserved meet) {
  if (connection.owner || connection.is_ledger) return act(id, connection, kOneWay);
  protocol::Flushed answer;
  answer.error = -unserved_.meet(meet.object);
  (void)!::send(connection.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
  return false;
}

bool AttachServer::act(std::uint64_t, Connection& connection, message::Declined) {
  const auto found = processes_.find(connection.pid);
  const bool is_its =
      found != processes_.end() && connection.owner && found->second.owner == connection.owner;
  if (!is_its) return connection.is_ledger;
  const std::uint16_t slot = connection.owner.slot();
  found->second.owner = Owner();
  connection.owner = Owner();
  events_.on_departure(clients_.declare_dead(slot), AttachEvents::Departure::kDied);
  return false;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::TakenOver taken) {
  if (!connection.is_ledger) return act(id, connection, kTooEarly);
  if (unserved_.taken_over(id, taken.sender)) events_.on_ledger_over();
  return true;
}

// What is asked on a ledger connection is answered by another thread through a descriptor of its
// own, so that this thread may close the connection any time.
UniqueFd AttachServer::begin_ledger(std::uint64_t id, Connection& connection, std::uint32_t run) {
  UniqueFd answer(::fcntl(connection.socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!answer) return answer;
  connection.run = run;
  if (!connection.is_ledger) {
    connection.is_ledger = true;
    unserved_.begin(id, connection.pid);
    if (watch(connection.pid) == nullptr) unserved_.holder_ended(connection.pid);
  }
  return answer;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Unserved unserved) {
  if (connection.owner) return act(id, connection, kOneWay);
  UniqueFd answer = begin_ledger(id, connection, unserved.run);
  if (!answer) return false;
  note_foreign(ForeignProgram{unserved.sender, unserved.run, std::move(unserved.command),
                              text_of(unserved.reason)});
  events_.on_unserved(std::move(answer));
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::KeepThrough keep) {
  if (connection.owner) return act(id, connection, kOneWay);
  UniqueFd answer = begin_ledger(id, connection, keep.told.run);
  if (!answer) return false;
  events_.on_keep_through(std::move(answer), id, std::move(keep.file), keep.told);
  return true;
}

UniqueFd AttachServer::give_away(std::uint64_t id, Connection& connection) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  UniqueFd socket = std::move(connection.socket);
  connections_.erase(id);
  return socket;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::ObjectDescriptor given) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  FileRoom room = clients_.descriptors().received(connection.owner.slot());
  UniqueFd fd = given.descriptor ? std::move(given.descriptor) : lost_descriptor(given);
  if (fd && given.is_lent) fd = with_own_description(std::move(fd));
  if (fd && files_.insert(given.object, std::move(fd), std::move(room), connection.run)) {
    events_.on_descriptor(given.object);
    ++descriptors_received_;
    rest(id, connection);
    return true;
  }
  events_.log("a descriptor handed over by process " + std::to_string(connection.pid) +
              " cannot be used");
  losses_.push_back(Loss{given.object, connection.owner});
  tell_losses();
  return true;
}

// The sender sets the flag after it has sent: it is cleared once it was seen. What the sender made
// dirty meanwhile is handed over with its next write, or stored when it closes the file.
void AttachServer::tell_losses() {
  std::erase_if(losses_, [this](const Loss& loss) {
    Object& object = memory_.objects().at(loss.object);
    if (files_.find(loss.object) != nullptr) return true;
    const bool is_believed = object.has(kObjectHandedOver);
    if (is_believed) object.clear(kObjectHandedOver);
    return is_believed || !memory_.owners().is_alive(loss.sender);
  });
}

// The kernel had no number for it: the limit was lowered, or more is open here than was counted.
// The sender still has the file open, unless it has ended since.
UniqueFd AttachServer::lost_descriptor(const message::ObjectDescriptor& given) {
  clients_.descriptors().free_a_number();
  const std::string path =
      "/proc/" + std::to_string(given.sender) + "/fd/" + std::to_string(given.number);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  clients_.descriptors().measure();
  return fd;
}

bool AttachServer::refuse(const Connection& connection, UnservedReason code,
                          const std::string& reason) const {
  protocol::Refused refused;
  refused.code = code;
  refused.header.type = Type::kRefused;
  std::snprintf(refused.reason, sizeof refused.reason, "%s", reason.c_str());
  (void)!::send(connection.socket.get(), &refused, sizeof refused, MSG_NOSIGNAL | MSG_DONTWAIT);
  return false;
}

bool AttachServer::welcome(Connection& connection, const message::Hello& hello) {
  if (connection.owner || connection.is_ledger)
    return act(0, connection, message::Malformed{"a second greeting"});
  if (hello.layout_version != kLayoutVersion) {
    return refuse(
        connection, UnservedReason::kOtherVersion,
        "the node's memory has another layout: restart the node with this version of Cairn");
  }
  Process* process = watch(connection.pid);
  if (process == nullptr)
    return refuse(connection, UnservedReason::kFailed, "the process cannot be watched");
  if (process->owner) {
    // Only an exec makes a process attach twice: nobody of the old image is left to touch the
    // arena.
    process->departed.push_back(clients_.declare_dead(process->owner.slot()));
    process->owner = Owner();
    events_.on_departure(process->departed.back(), AttachEvents::Departure::kExeced);
  }
  ClientInfo client;
  client.pid = connection.pid;
  client.run = hello.run;
  client.command = hello.command;
  const std::optional<Owner> owner = clients_.attach(client);
  if (!owner) {
    return refuse(connection, UnservedReason::kNoSlot,
                  "all " + std::to_string(memory_.slot_count()) + " slots are taken (clients.max)");
  }
  connection.owner = *owner;
  connection.run = hello.run;
  process->owner = *owner;
  process->run = hello.run;
  return send_welcome(connection);
}

bool AttachServer::send_welcome(const Connection& connection) const {
  protocol::Welcome welcome;
  welcome.slot = connection.owner.slot();
  welcome.generation = connection.owner.generation();
  welcome.shape = memory_.shape();
  int fds[1 + kTiersMax];
  unsigned count = 0;
  fds[count++] = memory_.control().fd();
  fds[count++] = memory_.data().fd();
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (welcome.shape.tier_bytes[tier] != 0)
      fds[count++] = memory_.file_tier(static_cast<TierId>(tier)).fd();
  }
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
  return ::sendmsg(connection.socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

void AttachServer::note_foreign(const ForeignProgram& program) {
  events_.log("not buffered: " + program.command + " (process " + std::to_string(program.pid) +
              "): " + program.reason);
  if (watch(program.pid) != nullptr) clients_.note_foreign(program);
}

void AttachServer::inherited(const Connection& connection) {
  const auto found = processes_.find(connection.pid);
  if (found == processes_.end()) return;
  // An image that is not served has no slot of its own: what is there is the old one's.
  if (connection.is_ledger && found->second.owner) {
    found->second.departed.push_back(clients_.declare_dead(found->second.owner.slot()));
    found->second.owner = Owner();
    events_.on_departure(found->second.departed.back(), AttachEvents::Departure::kExeced);
  }
  for (const Owner old : found->second.departed) events_.on_inherited(old);
  found->second.departed.clear();
  if (!connection.is_ledger) clients_.end_foreign(connection.pid);
}

AttachServer::Process* AttachServer::watch(pid_t pid) {
  if (const auto found = processes_.find(pid); found != processes_.end()) return &found->second;
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd || !add_to_epoll(epoll_.get(), pidfd.get(),
                              token(Kind::kProcess, static_cast<std::uint64_t>(pid)))) {
    return nullptr;
  }
  Process process;
  process.pidfd = std::move(pidfd);
  return &processes_.emplace(pid, std::move(process)).first->second;
}

void AttachServer::process_ended(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  Process process = std::move(found->second);
  processes_.erase(found);
  std::erase_if(orphans_, [pid](const Orphan& orphan) { return orphan.pid == pid; });
  if (process.owner) {
    events_.on_departure(clients_.declare_dead(process.owner.slot()),
                         AttachEvents::Departure::kDied);
  }
  for (const Owner old : process.departed) events_.on_inherited(old);
  clients_.end_foreign(pid);
  if (unserved_.holder_ended(pid)) events_.on_ledger_over();
}

void AttachServer::check_orphans() {
  const std::int64_t now = monotonic_ns();
  std::vector<Orphan> due;
  std::erase_if(orphans_, [&](const Orphan& orphan) {
    if (orphan.check_at_ns > now) return false;
    due.push_back(orphan);
    return true;
  });
  for (const Orphan& orphan : due) {
    const auto found = processes_.find(orphan.pid);
    if (found == processes_.end() || found->second.owner != orphan.owner) continue;
    // Still mapped: the program closed our socket but goes on. Its death will be seen by the pidfd.
    // So it is with one of which the kernel says nothing, unless it has told that it executes what
    // cannot be intercepted.
    const NodeMapping mapping = node_mapping_of(orphan.pid);
    if (mapping == NodeMapping::kMapped) continue;
    if (mapping == NodeMapping::kUnknown && !clients_.is_foreign(orphan.pid)) continue;
    Process& process = found->second;
    process.departed.push_back(clients_.declare_dead(process.owner.slot()));
    process.owner = Owner();
    events_.on_departure(process.departed.back(), AttachEvents::Departure::kExeced);
  }
}

}  // namespace cairn::node
