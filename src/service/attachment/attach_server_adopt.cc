// SPDX-License-Identifier: Apache-2.0
// How the attach server of a successor goes on with the clients of the service that died.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "service/attachment/attach_server.h"
#include "service/attachment/memory_notice_file.h"
#include "service/process/local_socket.h"

namespace cairn::node {

SharedFd AttachServer::labelled(UniqueFd socket, const KeptLabel& label) const {
  KeptDescriptors& labels = labels_;
  const int number = socket.get();
  auto* held = new UniqueFd(std::move(socket));
  labels.note(number, label);
  return {held, [&labels](const UniqueFd* each) {
            labels.forget(each->get());
            delete each;
          }};
}

void AttachServer::label(const Connection& connection, const KeptLabel& label) const {
  labels_.note(connection.socket->get(), label);
}

Status AttachServer::adopt(const std::string& socket_path, Inheritance& inherited) {
  UniqueFd listener = inherited.take(KeptKind::kClientListener);
  if (!listener) return start(socket_path);
  write_notice(memory_, socket_path, events_);
  // Processes that connect from here on see this process, and its notice.
  if (const Status status = listen_on(listener.get()); !status) return status;
  CAIRN_RETURN_IF_ERROR(begin(socket_path, std::move(listener)));
  for (InheritedFd& each : inherited.take_all(KeptKind::kProcess))
    processes_.adopt(static_cast<pid_t>(each.label.number), std::move(each.fd));
  // First, because their numbers are taken.
  adopt_ledgers(inherited);
  next_connection_ = std::max(next_connection_, unserved_.adopt() + 1);
  const std::vector<Claimant> claimants = adopt_silent(inherited);
  adopt_clients(inherited);
  settle_seats(claimants);
  for (const ForeignProgram& program : clients_.foreign_running()) {
    if (!processes_.notice_end_of(program.pid, clients_.descriptors().take_one()))
      clients_.end_foreign(program.pid);
  }
  events_.on_ledger_over();
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

// Nobody had greeted on them, as far as the labels say. Returns who claims a slot on one of them.
std::vector<AttachServer::Claimant> AttachServer::adopt_silent(Inheritance& inherited) {
  std::vector<Claimant> claimants;
  for (UniqueFd& socket : inherited.take_connections(socket_path_)) {
    Peer peer;
    if (!peer_of(socket.get(), &peer) || peer.uid != ::geteuid() || peer.pid <= 0) continue;
    Datagram datagram;
    if (receive_datagram(socket.get(), peer.pid, Look::kPeek, &datagram) == Received::kDatagram) {
      const ClientMessage said =
          decode(std::move(datagram), memory_.objects(), memory_.descriptions().capacity());
      const auto* hello = std::get_if<message::Hello>(&said);
      if (hello != nullptr && hello->claim) claimants.push_back({peer.pid, hello->claim});
    }
    (void)adopt_connection(next_connection_, InheritedFd{std::move(socket), {}}, peer.pid);
    silent_.push_back(next_connection_++);
  }
  return claimants;
}

// A connection's number is its ledger's.
void AttachServer::adopt_ledgers(Inheritance& inherited) {
  for (InheritedFd& each : inherited.take_all(KeptKind::kLedger)) {
    const auto pid = static_cast<pid_t>(each.label.first);
    const LedgerId ledger = each.label.number;
    next_connection_ = std::max(next_connection_, ledger + 1);
    Connection& connection = adopt_connection(ledger, std::move(each), pid);
    connection.is_ledger = true;
    connection.room = clients_.descriptors().of_open();
    unserved_.begin(ledger, pid);
  }
}

void AttachServer::adopt_clients(Inheritance& inherited) {
  const std::vector<ClientInfo> active = clients_.active();
  for (InheritedFd& each : inherited.take_all(KeptKind::kClient)) {
    const Owner owner = Owner::from_bits(static_cast<std::uint32_t>(each.label.number));
    const auto pid = static_cast<pid_t>(each.label.first);
    Connection& connection = adopt_connection(next_connection_++, std::move(each), pid);
    connection.owner = owner;
    connection.is_adopted = true;
    for (const ClientInfo& client : active)
      if (client.slot == owner.slot()) connection.run = client.run;
  }
}

// It keeps its label at every step: without one it would be taken for a connection that has not
// greeted, and what is in it would be refused.
AttachServer::Connection& AttachServer::adopt_connection(std::uint64_t id, InheritedFd inherited,
                                                         pid_t pid) {
  Connection connection;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = connection_token(id);
  connection.is_resting = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, inherited.fd.get(), &event) != 0;
  if (connection.is_resting) resting_.push_back(id);
  connection.socket = labelled(std::move(inherited.fd), inherited.label);
  ask_again(connection.socket);
  connection.pid = pid;
  connection.accepted_ns = monotonic_ns();
  CAIRN_CHECK(!connections_.contains(id));
  return connections_.emplace(id, std::move(connection)).first->second;
}

// What the dead service had taken off the connection and not answered is lost: its process sends it
// again after this answer, as when the service has no number for a descriptor. A question that is
// still in the socket was noted, but not taken off.
void AttachServer::ask_again(const SharedFd& socket) {
  if (!labels_.is_asked(socket->get())) return;
  Datagram datagram;
  const bool is_there =
      receive_datagram(socket->get(), 0, Look::kPeek, &datagram) == Received::kDatagram &&
      asks_ledger(datagram);
  if (!is_there) Asker(socket, labels_).answer(-EAGAIN);
}

void AttachServer::settle_seats(const std::vector<Claimant>& claimants) {
  for (const ClientInfo& client : clients_.active()) {
    const bool claims_again = std::any_of(claimants.begin(), claimants.end(), [&](auto& each) {
      return each.pid == client.pid && clients_.seat_of(client, each.claim);
    });
    // Its greeting is read once more, and answered as before.
    if (!claims_again) settle_seat(client);
  }
  for (const ClientTable::Departed& departed : clients_.departed())
    processes_.adopt_departed(departed);
}

// A seat without a connection: its process has closed that and lives on, has executed another
// image, which greets next, or has never heard of its seat, and greets again.
void AttachServer::settle_seat(const ClientInfo& client) {
  const Owner owner = memory_.owners().current(client.slot);
  const bool is_connected =
      std::any_of(connections_.begin(), connections_.end(),
                  [owner](const auto& each) { return each.second.owner == owner; });
  processes_.adopt_attached(client.pid, owner);
  if (!is_connected) processes_.disconnected(client.pid, owner);
}

}  // namespace cairn::node
