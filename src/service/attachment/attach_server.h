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
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "frontends/protocol/protocol.h"
#include "service/attachment/client_message.h"
#include "service/attachment/client_table.h"
#include "service/process/unique_fd.h"
#include "service/write_back/lost_descriptors.h"
#include "service/write_back/store_files.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

// What the thread tells the rest of the service. Called in the thread: must not block.
class AttachEvents {
 public:
  enum class Departure : std::uint8_t {
    kDied,  // return everything
    // a new image runs in the process: locks and leases at once, its holds wait for the new image
    kExeced
  };
  virtual void on_departure(Owner dead, Departure how) = 0;
  // The new image of a process has taken over what it wants of `old`, which was departed by exec.
  virtual void on_inherited(Owner old) = 0;
  virtual void on_descriptor(ObjectIndex object) = 0;
  virtual void on_discarded(ObjectIndex object) = 0;
  // These answer kFlushed on `connection`, in a thread of its own.
  virtual void on_flush_request(SharedFd connection, ObjectIndex object, bool durable) = 0;
  // The same for everything of a file system; see SyncMessage.
  virtual void on_sync_request(SharedFd connection, std::uint64_t device) = 0;
  virtual void on_unserved(SharedFd connection) = 0;
  virtual void on_keep_through(SharedFd connection, LedgerId ledger, UniqueFd file,
                               const protocol::UnservedMessage& told) = 0;
  // A ledger of the unserved is over.
  virtual void on_ledger_over() = 0;
  virtual void log(const std::string& text) = 0;

 protected:
  ~AttachEvents() = default;
};

class AttachServer {
 public:
  AttachServer(const NodeMemory& memory, ClientTable& clients, StoreFiles& files,
               UnservedFiles& unserved, AttachEvents& events);
  ~AttachServer();

  Status start(const std::string& socket_path);
  // The socket's name is gone: listens at `socket_path` from now on. While it runs, by the thread
  // that started it.
  Status listen_again(const std::string& socket_path);
  void stop();

 private:
  struct Connection {
    FileRoom room;  // of a ledger's
    // What is asked on a ledger's connection is answered by another thread, which shares it.
    SharedFd socket;
    Owner owner;  // none until Hello was answered
    pid_t pid = 0;
    std::uint32_t run = 0;
    // It has just sent descriptors and will send more: it is looked at now and then instead of
    // waking this thread for each one, which costs the sender more than the message.
    bool is_resting = false;
    bool is_ledger = false;  // the connection's number names its ledger
    bool has_erred = false;  // it has sent what cannot be understood, and the log says so
  };
  struct Process {
    FileRoom room;  // none of one that is attached, which has room of its own
    UniqueFd pidfd;
    std::vector<Owner> departed;  // images before an exec, whose holds wait
    Owner owner;                  // none when the present image is not attached
    std::uint32_t run = 0;
  };

  void run();
  void accept_all();
  // Out of descriptors, connections wait in the listener's queue until some are closed.
  void listen(bool wanted);
  void serve_connection(std::uint64_t id);
  void rest(std::uint64_t id, Connection& connection);
  void serve_resting();
  bool handle(std::uint64_t id, Connection& connection, ClientMessage message);
  // What each message does. False: the connection is to be closed.
  bool act(std::uint64_t id, Connection& connection, message::Malformed what);
  bool act(std::uint64_t id, Connection& connection, message::Hello hello);
  bool act(std::uint64_t id, Connection& connection, message::ObjectDescriptor given);
  bool act(std::uint64_t id, Connection& connection, message::Discarded discarded);
  bool act(std::uint64_t id, Connection& connection, message::Inherited);
  bool act(std::uint64_t id, Connection& connection, message::Foreign foreign);
  bool act(std::uint64_t id, Connection& connection, message::Flush flush);
  bool act(std::uint64_t id, Connection& connection, message::Sync sync);
  bool act(std::uint64_t id, Connection& connection, message::Declined);
  bool act(std::uint64_t id, Connection& connection, message::Unserved unserved);
  bool act(std::uint64_t id, Connection& connection, message::KeepThrough keep);
  bool act(std::uint64_t id, Connection& connection, message::TakenOver taken);
  bool act(std::uint64_t id, Connection& connection, message::MeetUnserved meet);
  void try_lost_again();
  bool welcome(Connection& connection, const message::Hello& hello);
  static void answer(const Connection& connection, int error);
  bool refuse(const Connection& connection, UnservedReason code, const std::string& reason) const;
  // The ledger for what is asked on this connection.
  LedgerId ledger_of(std::uint64_t id, Connection& connection, std::uint32_t run);
  // Where the answer to a question for `ledger` is sent. The connection of none goes with it.
  SharedFd answer_to(std::uint64_t id, Connection& connection, LedgerId ledger);
  void close_connection(std::uint64_t id);
  bool send_welcome(const Connection& connection) const;
  // The connection leaves the thread's care.
  SharedFd give_away(std::uint64_t id, Connection& connection);
  void note_foreign(const ForeignProgram& program);
  void inherited(const Connection& connection);
  // Makes sure that the death of `pid` is noticed. Null when it is dead already, or there is no
  // number to watch it with.
  Process* watch(pid_t pid);
  // The same of one that is not attached, also without room for a descriptor of it. False when it
  // is dead already.
  bool notice_end_of(pid_t pid, std::optional<FileRoom> room);
  void process_ended(pid_t pid);
  void check_unwatched();
  void check_orphans();

  const NodeMemory& memory_;
  ClientTable& clients_;
  StoreFiles& files_;
  UnservedFiles& unserved_;
  AttachEvents& events_;
  UniqueFd listener_;
  std::string socket_path_;
  bool is_listening_ = true;
  UniqueFd epoll_;
  UniqueFd stop_event_;
  std::thread thread_;
  std::uint64_t next_connection_ = 1;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::map<pid_t, Process> processes_;
  std::vector<std::uint64_t> resting_;
  std::uint64_t descriptors_received_ = 0;
  // Processes whose connection closed while they live: an exec, or a death that is a moment away.
  struct Orphan {
    pid_t pid;
    Owner owner;
    std::int64_t check_at_ns;
  };
  std::vector<Orphan> orphans_;
  LostDescriptors lost_;
  // Processes whose end is looked for now and then, for want of numbers to watch them with.
  std::set<pid_t> unwatched_;
  std::int64_t unwatched_at_ns_ = 0;
};

}  // namespace cairn::node
