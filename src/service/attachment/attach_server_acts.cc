// SPDX-License-Identifier: Apache-2.0
// What the attach server does about each message.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "base/check.h"
#include "service/attachment/attach_server.h"
#include "service/attachment/welcome_message.h"

namespace cairn::node {
namespace {

using protocol::Type;

// Anybody of the node's user may connect and send rubbish, as often as he likes.
constexpr unsigned kNamedErringMax = 20;
constexpr message::Malformed kTooEarly{"a message before its greeting"};
constexpr message::Malformed kOneWay{"a request on a connection of another kind"};

}  // namespace

bool AttachServer::act(std::uint64_t, Connection& connection, message::Malformed what) {
  if (!connection.has_erred && named_erring_ < kNamedErringMax) {
    const bool is_last = ++named_erring_ == kNamedErringMax;
    events_.log("process " + std::to_string(connection.pid) + " has sent " + what.reason +
                ": left out, as all that follows of this kind" +
                (is_last ? "; others that do so are not named any more" : ""));
  }
  connection.has_erred = true;
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

bool AttachServer::act(std::uint64_t id, Connection& connection, const message::ArrayRead& read) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  events_.on_array_read(read, connection.owner);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, const message::PackedRead& read) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  events_.on_packed_read(read, connection.owner);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, const message::ArrayNews& news) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  events_.on_array_news(news, connection.run);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Inherited) {
  if (!connection.owner && !connection.is_ledger) return act(id, connection, kTooEarly);
  processes_.inherited(connection.pid, connection.is_ledger);
  return true;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Foreign foreign) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  note_foreign(ForeignProgram{foreign.sender, connection.run, std::move(foreign.command),
                              std::move(foreign.reason)});
  return true;
}

// A question has a connection of its own.
template <typename Message>
bool AttachServer::pass_on(std::uint64_t id, Connection& connection, Message&& question) {
  if (connection.owner || connection.is_ledger) return act(id, connection, kOneWay);
  events_.on_question(Asker(give_away(id, connection), Asker::Question::kInSocket),
                      std::forward<Message>(question));
  return false;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Flush flush) {
  return pass_on(id, connection, flush);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Sync sync) {
  return pass_on(id, connection, sync);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::MeetUnserved meet) {
  return pass_on(id, connection, meet);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::MakeDurable durable) {
  return pass_on(id, connection, durable);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::NoteCut cut) {
  return pass_on(id, connection, cut);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::NoteRenamed renamed) {
  return pass_on(id, connection, renamed);
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::MakeNamesDurable names) {
  return pass_on(id, connection, std::move(names));
}

bool AttachServer::act(std::uint64_t, Connection& connection, message::Declined) {
  if (!connection.owner || !processes_.decline(connection.pid, connection.owner))
    return connection.is_ledger;
  connection.owner = Owner();
  return false;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::TakenOver taken) {
  if (!connection.is_ledger) return act(id, connection, kTooEarly);
  if (unserved_.taken_over(id, taken.sender)) events_.on_ledger_over();
  return true;
}

// A ledger costs one number, its connection's: its end tells of the end of all its holders. Without
// room for that, the files go into the node's own ledger, which is never over.
LedgerId AttachServer::ledger_of(std::uint64_t id, Connection& connection, std::uint32_t run) {
  CAIRN_CHECK(!connection.owner);
  CAIRN_CHECK(id != UnservedFiles::kOfNode);
  connection.run = run;
  if (connection.is_ledger) return id;
  std::optional<FileRoom> room = clients_.descriptors().take_one();
  if (!room) return UnservedFiles::kOfNode;
  connection.room = std::move(*room);
  connection.is_ledger = true;
  unserved_.begin(id, connection.pid);
  label(connection, {KeptKind::kLedger, id, static_cast<std::uint64_t>(connection.pid)});
  return id;
}

SharedFd AttachServer::answer_to(std::uint64_t id, Connection& connection, LedgerId ledger) {
  return ledger == UnservedFiles::kOfNode ? give_away(id, connection) : connection.socket;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::Unserved unserved) {
  if (connection.owner) return act(id, connection, kOneWay);
  const LedgerId ledger = ledger_of(id, connection, unserved.run);
  clients_.note_foreign(ForeignProgram{unserved.sender, unserved.run, std::move(unserved.command),
                                       text_of(unserved.reason)});
  const bool is_watched = ledger != UnservedFiles::kOfNode && unserved.sender == connection.pid;
  if (!is_watched && !processes_.notice_end_of(unserved.sender, std::nullopt))
    processes_.ended(unserved.sender);
  events_.on_unserved(Asker(answer_to(id, connection, ledger), labels_));
  return ledger != UnservedFiles::kOfNode;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::KeepThrough keep) {
  if (connection.owner) return act(id, connection, kOneWay);
  if (!keep.file) {
    // There was no number for it. This connection's is free for the next try, unless files depend
    // on it.
    Asker(connection.socket, labels_).answer(-EAGAIN);
    return connection.is_ledger;
  }
  const LedgerId ledger = ledger_of(id, connection, keep.told.run);
  events_.on_keep_through(Asker(answer_to(id, connection, ledger), labels_), ledger,
                          std::move(keep.file), keep.told);
  return ledger != UnservedFiles::kOfNode;
}

SharedFd AttachServer::give_away(std::uint64_t id, Connection& connection) {
  CAIRN_CHECK(connection.socket != nullptr);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket->get(), nullptr);
  SharedFd socket = std::move(connection.socket);
  connections_.erase(id);
  return socket;
}

bool AttachServer::act(std::uint64_t id, Connection& connection, message::ObjectDescriptor given) {
  if (!connection.owner) return act(id, connection, kTooEarly);
  UniqueFd fd = std::move(given.descriptor);
  if (fd && given.is_lent) fd = with_own_description(std::move(fd));
  // Only now: the sender may be waiting until what it has lent is closed.
  FileRoom room = clients_.descriptors().received(connection.owner.slot());
  if (fd && files_.insert(given.object, std::move(fd), std::move(room), connection.run)) {
    events_.on_descriptor(given.object);
    ++descriptors_received_;
    rest(id, connection);
    return true;
  }
  events_.log("a descriptor handed over by process " + std::to_string(connection.pid) +
              " has not arrived, or is not of its file");
  lost_.add(LostDescriptor{given.object, connection.owner, given.sender, connection.pid,
                           given.number, connection.run});
  room = FileRoom();
  try_lost_again();
  return true;
}

void AttachServer::try_lost_again() {
  lost_.try_again([this](ObjectIndex object) { events_.on_descriptor(object); });
}

bool AttachServer::refuse(const Connection& connection, UnservedReason code,
                          const std::string& reason) const {
  protocol::Refused refused;
  refused.code = code;
  refused.header.type = Type::kRefused;
  std::snprintf(refused.reason, sizeof refused.reason, "%s", reason.c_str());
  (void)!::send(connection.socket->get(), &refused, sizeof refused, MSG_NOSIGNAL | MSG_DONTWAIT);
  return false;
}

bool AttachServer::welcome(Connection& connection, const message::Hello& hello) {
  if (connection.is_adopted && connection.owner) return welcome_again(connection, hello);
  if (connection.owner || connection.is_ledger)
    return act(0, connection, message::Malformed{"a second greeting"});
  if (hello.layout_version != kLayoutVersion) {
    return refuse(
        connection, UnservedReason::kOtherVersion,
        "the node's memory has another layout: restart the node with this version of Cairn");
  }
  // What the earlier image has sent is its own.
  if (processes_.knows(connection.pid)) serve_greeted(connection.pid);
  processes_.image_replaced(connection.pid);
  ClientInfo client;
  client.pid = connection.pid;
  client.run = hello.run;
  client.command = hello.command;
  connection.run = hello.run;
  const auto claimed = clients_.attach_claimed(client, hello.claim);
  if (!claimed) return take_in(connection, client);
  connection.owner = *claimed;
  label_client(connection);
  processes_.attach_claimed(connection.pid, *claimed, connection.socket->get());
  return true;
}

// The service before this one died before it had taken the greeting off.
bool AttachServer::welcome_again(Connection& connection, const message::Hello& hello) {
  connection.is_adopted = false;
  if (hello.claim || send_welcome(memory_, connection.owner, connection.socket->get())) return true;
  // A process that the dead service had welcomed may have ended since. What it has sent before, its
  // descriptors of files that nobody has stored, is still to be read.
  return errno == EPIPE || errno == ECONNRESET;
}

void AttachServer::label_client(const Connection& connection) const {
  label(connection,
        {KeptKind::kClient, connection.owner.bits(), static_cast<std::uint64_t>(connection.pid)});
}

bool AttachServer::take_in(Connection& connection, const ClientInfo& client) {
  UnservedReason why = UnservedReason::kNone;
  const std::optional<Owner> owner = clients_.attach(client, &why);
  if (!owner) return refuse(connection, why, text_of(why));
  // After it has been let in: a process that is refused costs no number.
  if (!processes_.attach(connection.pid, *owner)) {
    events_.on_departure(clients_.declare_dead(owner->slot(), Departure::kDied), Departure::kDied);
    return refuse(connection, UnservedReason::kFailed, "the process cannot be watched");
  }
  connection.owner = *owner;
  label_client(connection);
  return send_welcome(memory_, *owner, connection.socket->get());
}

void AttachServer::note_foreign(const ForeignProgram& program) {
  events_.log("not buffered: " + program.command + " (process " + std::to_string(program.pid) +
              "): " + program.reason);
  if (processes_.notice_end_of(program.pid, clients_.descriptors().take_one()))
    clients_.note_foreign(program);
}

}  // namespace cairn::node
