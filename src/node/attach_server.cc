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

#include "base/clock.h"
#include "node/local_socket.h"

namespace cairn::node {
namespace {

using protocol::Type;

// What an epoll event speaks of: the kind in the top byte, a number below.
constexpr unsigned kKindShift = 56;
enum class Kind : std::uint64_t { kListener = 1, kStop, kConnection, kProcess };
constexpr std::uint64_t token(Kind kind, std::uint64_t number = 0) {
  return static_cast<std::uint64_t>(kind) << kKindShift | number;
}

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

// After an exec nothing of the node is mapped any more.
bool maps_a_node(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  bool found = false;
  char line[512];
  while (!found && std::fgets(line, sizeof line, file) != nullptr) {
    found = std::strstr(line, "memfd:cairn-control") != nullptr;
  }
  std::fclose(file);
  return found;
}

template <typename T>
bool parse(const char* bytes, std::size_t length, T* message) {
  if (length != sizeof(T)) return false;
  std::memcpy(message, bytes, sizeof(T));
  return true;
}

std::string bounded_text(const char* text, std::size_t size) {
  return std::string(text, ::strnlen(text, size));
}

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
  for (;;) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Message message;
    iovec part{message.bytes, sizeof message.bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t length =
        ::recvmsg(found->second.socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    message.sender = found->second.pid;
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); length > 0 && item != nullptr;
         item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != SOL_SOCKET) continue;
      if (item->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
        message.fd.reset(fd);
      } else if (item->cmsg_type == SCM_CREDENTIALS) {
        ucred credentials{};
        std::memcpy(&credentials, CMSG_DATA(item), sizeof credentials);
        if (credentials.pid > 0) message.sender = credentials.pid;
      }
    }
    message.length = length > 0 ? static_cast<std::size_t>(length) : 0;
    if (length > 0 && handle(id, found->second, message)) continue;
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

// Returns false when the connection is to be closed.
bool AttachServer::handle(std::uint64_t id, Connection& connection, Message& message) {
  protocol::Header header;
  if (message.length < sizeof header) return false;
  std::memcpy(&header, message.bytes, sizeof header);
  if (header.magic != protocol::kMagic) return false;
  if (header.version != protocol::kVersion) {
    refuse(connection, UnservedReason::kOtherVersion,
           "this node runs Cairn " CAIRN_VERSION ", the program was started with another version");
    return false;
  }
  switch (header.type) {
    case Type::kHello:
      return welcome(connection, message);
    case Type::kObjectDescriptor: {
      protocol::ObjectMessage object;
      if (!parse(message.bytes, message.length, &object) || !connection.owner) return false;
      take_descriptor(id, connection, message, object);
      return true;
    }
    case Type::kDiscarded: {
      protocol::ObjectMessage object;
      if (!parse(message.bytes, message.length, &object) || !connection.owner) return false;
      events_.on_discarded(static_cast<ObjectIndex>(object.object));
      return true;
    }
    case Type::kInherited:
      inherited(connection);
      return true;
    case Type::kForeign: {
      protocol::ForeignMessage foreign;
      if (parse(message.bytes, message.length, &foreign))
        note_foreign(ForeignProgram{message.sender, connection.run,
                                    bounded_text(foreign.command, sizeof foreign.command),
                                    bounded_text(foreign.reason, sizeof foreign.reason)});
      return true;
    }
    case Type::kFlush:
      return flush(id, connection, message);
    case Type::kSync: {
      protocol::SyncMessage sync;
      if (!parse(message.bytes, message.length, &sync)) return false;
      events_.on_sync_request(give_away(id, connection), sync.device);
      return false;
    }
    case Type::kDeclined:
      declined(connection);
      return false;
    case Type::kUnserved:
    case Type::kKeepThrough:
      return unserved(id, connection, message);
    case Type::kTakenOver:
      if (connection.is_ledger && unserved_.taken_over(id, message.sender))
        events_.on_ledger_over();
      return connection.is_ledger;
    case Type::kMeetUnserved:
      return meet_unserved(connection, message);
    default:
      return false;
  }
}

UniqueFd AttachServer::give_away(std::uint64_t id, Connection& connection) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  UniqueFd socket = std::move(connection.socket);
  connections_.erase(id);
  return socket;
}

bool AttachServer::flush(std::uint64_t id, Connection& connection, const Message& message) {
  protocol::ObjectMessage object;
  if (!parse(message.bytes, message.length, &object)) return false;
  events_.on_flush_request(give_away(id, connection), static_cast<ObjectIndex>(object.object),
                           object.durable != 0);
  return false;
}

bool AttachServer::meet_unserved(const Connection& connection, const Message& message) {
  protocol::ObjectMessage object;
  if (!parse(message.bytes, message.length, &object)) return false;
  protocol::Flushed answer;
  answer.error = -unserved_.meet(static_cast<ObjectIndex>(object.object));
  (void)!::send(connection.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
  return false;
}

void AttachServer::declined(Connection& connection) {
  const auto found = processes_.find(connection.pid);
  const bool is_its =
      found != processes_.end() && connection.owner && found->second.owner == connection.owner;
  if (!is_its) return;
  const std::uint16_t slot = connection.owner.slot();
  found->second.owner = Owner();
  connection.owner = Owner();
  events_.on_departure(clients_.declare_dead(slot), AttachEvents::Departure::kDied);
}

// What is asked on a ledger connection is answered by another thread through a descriptor of its
// own, so that this thread may close the connection any time.
bool AttachServer::unserved(std::uint64_t id, Connection& connection, Message& message) {
  protocol::UnservedMessage told;
  if (connection.owner || !parse(message.bytes, message.length, &told)) return false;
  UniqueFd answer(::fcntl(connection.socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!answer) return false;
  connection.run = told.run;
  if (!connection.is_ledger) {
    connection.is_ledger = true;
    unserved_.begin(id, connection.pid);
    if (watch(connection.pid) == nullptr) unserved_.holder_ended(connection.pid);
  }
  if (told.header.type == Type::kKeepThrough) {
    events_.on_keep_through(std::move(answer), id, std::move(message.fd), told);
    return true;
  }
  note_foreign(ForeignProgram{message.sender, told.run,
                              bounded_text(told.command, sizeof told.command),
                              text_of(told.reason)});
  events_.on_unserved(std::move(answer));
  return true;
}

void AttachServer::take_descriptor(std::uint64_t id, Connection& connection, Message& message,
                                   const protocol::ObjectMessage& object) {
  const auto index = static_cast<ObjectIndex>(object.object);
  FileRoom room = clients_.descriptors().received(connection.owner.slot());
  UniqueFd fd = message.fd ? std::move(message.fd) : lost_descriptor(message, object);
  if (fd && object.is_lent != 0) fd = with_own_description(std::move(fd));
  if (fd && files_.insert(index, std::move(fd), std::move(room), connection.run)) {
    events_.on_descriptor(index);
    ++descriptors_received_;
    rest(id, connection);
    return;
  }
  events_.log("a descriptor handed over by process " + std::to_string(connection.pid) +
              " cannot be used");
  if (raw(index) == 0 || raw(index) >= memory_.objects().capacity()) return;
  losses_.push_back(Loss{index, connection.owner});
  tell_losses();
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
UniqueFd AttachServer::lost_descriptor(const Message& message,
                                       const protocol::ObjectMessage& object) {
  clients_.descriptors().free_a_number();
  const std::string path =
      "/proc/" + std::to_string(message.sender) + "/fd/" + std::to_string(object.descriptor);
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

bool AttachServer::welcome(Connection& connection, const Message& message) {
  protocol::Hello hello;
  if (connection.owner || !parse(message.bytes, message.length, &hello)) {
    return refuse(connection, UnservedReason::kOtherVersion, "malformed greeting");
  }
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
  client.command = bounded_text(hello.command, sizeof hello.command);
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
  welcome.shape = memory_.header().shape;
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
    if (maps_a_node(orphan.pid)) continue;
    Process& process = found->second;
    process.departed.push_back(clients_.declare_dead(process.owner.slot()));
    process.owner = Owner();
    events_.on_departure(process.departed.back(), AttachEvents::Departure::kExeced);
  }
}

}  // namespace cairn::node
