// SPDX-License-Identifier: Apache-2.0
// The thread behind client.sock: welcomes processes, takes their descriptors and messages, notices
// their death.
//
// Nothing in it blocks: an attach waits for this thread alone. What takes time is handed to the
// reaper (deaths) and to the request worker (kFlush, kUnserved, kKeepThrough).
//
// Thread safety: start() and stop() by the composing thread; the rest is the thread's own.
// Ownership: owns the connections and process descriptors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "frontends/protocol/protocol.h"
#include "service/attachment/attach_events.h"
#include "service/attachment/client_message.h"
#include "service/attachment/client_table.h"
#include "service/attachment/process_watch.h"
#include "service/keeping/inheritance.h"
#include "service/keeping/kept_descriptors.h"
#include "service/process/unique_fd.h"
#include "service/write_back/lost_descriptors.h"
#include "service/write_back/store_files.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

class AttachServer {
 public:
  // The parts that it works with; all of them outlive it.
  struct Parts {
    const NodeMemory& memory;
    ClientTable& clients;
    StoreFiles& files;
    UnservedFiles& unserved;
    AttachEvents& events;
    KeptDescriptors& labels;
  };
  explicit AttachServer(const Parts& parts);
  ~AttachServer();

  Status start(const std::string& socket_path);
  // The same by a successor: listener, connections and processes are those of the dead service.
  Status adopt(const std::string& socket_path, Inheritance& inherited);
  // The socket's name is gone: listens at `socket_path` from now on. While it runs, by the thread
  // that started it.
  Status listen_again(const std::string& socket_path);
  void stop();

 private:
  struct Connection {
    FileRoom room;  // of a ledger's
    // Another thread, which shares it, answers the questions on a ledger's connection.
    SharedFd socket;
    Owner owner;  // none until Hello was answered
    pid_t pid = 0;
    std::uint32_t run = 0;
    // It has just sent descriptors and will send more: it is looked at now and then instead of
    // waking this thread for each one, which costs the sender more than the message.
    bool is_resting = false;
    std::int64_t accepted_ns = 0;
    bool is_ledger = false;  // the connection's number names its ledger
    bool has_erred = false;  // it has sent what cannot be understood, and the log says so
    // Its greeting was answered by a service before this one, and may still be in the socket.
    bool is_adopted = false;
  };
  void run();
  Status begin(const std::string& socket_path, UniqueFd listener);
  static std::uint64_t connection_token(std::uint64_t id);
  // Says in a greeting that nobody has taken off its socket which slot is its own.
  struct Claimant {
    pid_t pid = 0;
    SlotClaim claim;
  };
  std::vector<Claimant> adopt_silent(Inheritance& inherited);
  void adopt_ledgers(Inheritance& inherited);
  void adopt_clients(Inheritance& inherited);
  Connection& adopt_connection(std::uint64_t id, InheritedFd inherited, pid_t pid);
  void settle_seats(const std::vector<Claimant>& claimants);
  void settle_seat(const ClientInfo& client);
  void ask_again(const SharedFd& socket);
  // A socket that says for a successor what it is, as long as it is open.
  SharedFd labelled(UniqueFd socket, const KeptLabel& label) const;
  void label(const Connection& connection, const KeptLabel& label) const;
  int wait_ms() const;
  // True when no connection waits in the listener's queue.
  bool accept_all();
  void accepted(UniqueFd socket);
  // Reads the greetings of slots that have been taken by now.
  void read_claims();
  bool can_accept() const;
  // Out of descriptors, connections wait in the listener's queue until there are enough again.
  void listen(bool wanted);
  void try_to_listen();
  // The numbers of those who have said nothing for long go to those who wait.
  void close_silent();
  void serve_connection(std::uint64_t id);
  // Connections that have said nothing yet: all, or those of the process.
  void serve_silent(std::optional<pid_t> pid);
  // Those of its images that are attached.
  void serve_greeted(pid_t pid);
  void rest(std::uint64_t id, Connection& connection);
  void serve_resting();
  // False: the connection is to be closed.
  bool take(std::uint64_t id, Connection& connection, bool is_peeked, Datagram datagram);
  bool handle(std::uint64_t id, Connection& connection, ClientMessage message);
  // What each message does. False: the connection is to be closed.
  bool act(std::uint64_t id, Connection& connection, message::Malformed what);
  bool act(std::uint64_t id, Connection& connection, message::Hello hello);
  bool act(std::uint64_t id, Connection& connection, message::ObjectDescriptor given);
  bool act(std::uint64_t id, Connection& connection, message::Discarded discarded);
  bool act(std::uint64_t id, Connection& connection, const message::ArrayRead& read);
  bool act(std::uint64_t id, Connection& connection, const message::PackedRead& read);
  bool act(std::uint64_t id, Connection& connection, const message::ArrayNews& news);
  bool act(std::uint64_t id, Connection& connection, message::Inherited);
  bool act(std::uint64_t id, Connection& connection, message::Foreign foreign);
  bool act(std::uint64_t id, Connection& connection, message::Flush flush);
  bool act(std::uint64_t id, Connection& connection, message::Sync sync);
  bool act(std::uint64_t id, Connection& connection, message::Declined);
  bool act(std::uint64_t id, Connection& connection, message::Unserved unserved);
  bool act(std::uint64_t id, Connection& connection, message::KeepThrough keep);
  bool act(std::uint64_t id, Connection& connection, message::TakenOver taken);
  bool act(std::uint64_t id, Connection& connection, message::MeetUnserved meet);
  bool act(std::uint64_t id, Connection& connection, message::MakeDurable durable);
  bool act(std::uint64_t id, Connection& connection, message::NoteCut cut);
  bool act(std::uint64_t id, Connection& connection, message::NoteRenamed renamed);
  bool act(std::uint64_t id, Connection& connection, message::MakeNamesDurable names);
  template <typename Message>
  bool pass_on(std::uint64_t id, Connection& connection, Message&& question);
  void try_lost_again();
  bool welcome(Connection& connection, const message::Hello& hello);
  bool welcome_again(Connection& connection, const message::Hello& hello);
  bool take_in(Connection& connection, const ClientInfo& client);
  void label_client(const Connection& connection) const;
  bool refuse(const Connection& connection, UnservedReason code, const std::string& reason) const;
  // The ledger for the files that this connection names.
  LedgerId ledger_of(std::uint64_t id, Connection& connection, std::uint32_t run);
  // Where the answer to a question for `ledger` is sent. The connection of none goes with it.
  SharedFd answer_to(std::uint64_t id, Connection& connection, LedgerId ledger);
  void close_connection(std::uint64_t id);
  // The connection leaves the thread's care.
  SharedFd give_away(std::uint64_t id, Connection& connection);
  void note_foreign(const ForeignProgram& program);

  const NodeMemory& memory_;
  ClientTable& clients_;
  StoreFiles& files_;
  UnservedFiles& unserved_;
  AttachEvents& events_;
  KeptDescriptors& labels_;
  KeptFd listener_;
  std::string socket_path_;
  bool is_listening_ = true;
  std::int64_t listen_at_ns_ = 0;  // not before
  UniqueFd epoll_;
  UniqueFd stop_event_;
  UniqueFd claims_event_;    // somebody waits until greetings are read
  bool has_claims_ = false;  // that are to be read still
  std::thread thread_;
  std::uint64_t next_connection_ = 1;
  unsigned named_erring_ = 0;  // connections that the log names for what they have sent
  std::unordered_map<std::uint64_t, Connection> connections_;
  ProcessWatch processes_;
  std::vector<std::uint64_t> resting_;
  std::vector<std::uint64_t> silent_;  // connections without a message, in their order
  std::uint64_t descriptors_received_ = 0;
  LostDescriptors lost_;
};

}  // namespace cairn::node
