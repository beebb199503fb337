// SPDX-License-Identifier: Apache-2.0
// The command line's way in: control.sock, one JSON object per line each way, a thread per
// connection.
//
// Connections are few (one per run, one per command) and sleep in recv(2), so threads are cheap
// here and a drain can take its time without holding up anybody else.
//
// Connections outlive a service that is killed: its successor adopts them. What the dead service
// had read is lost, so the successor says that it is there by a line of kind "restarted", and the
// command line sends again what has not been answered. Its requests have numbers ("id") that grow
// on each connection, every line that answers one repeats its number, and a service takes each
// number once.
//
//   the service died when the request was   the successor reads      the command line reads
//   unread, or on its way                   it; the repetition is    restarted, its answer
//                                           ignored
//   read in part                            the rest, which is none  restarted, its answer
//                                           (*); the repetition
//   read, not answered                      the repetition           restarted, its answer
//   answered in part                        the repetition           half a line that kCancel ends,
//                                                                    restarted, its answer
//   answered                                nothing, or the          its answer; later restarted,
//                                           repetition (+)           and perhaps a second answer,
//                                                                    whose number nobody waits for
//
//   (*) on an adopted connection, what is no JSON object is ignored until the first that is one
//   (+) when a second service died before the command line had read the first "restarted"
//
// A request may so be done twice, by two services. That changes nothing but for runs, whose answers
// are kept (service/control/run_sessions.h).
//
// Thread safety: start() and stop() by the composing thread. Ownership: owns connections and their
// threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "service/control/json.h"
#include "service/keeping/kept_descriptors.h"

namespace cairn::node {

// One connection, as the code that answers sees it.
class ControlPeer {
 public:
  // `request`: the number of the request that is answered; 0: it has none.
  explicit ControlPeer(int socket, std::uint64_t request = 0)
      : socket_(socket), request_(request) {}
  // Sends one line. Returns false when the peer is gone.
  bool send(const Json& line);
  // Sends the line that ends a request in vain: what is wrong, and what to do.
  void fail(const std::string& message, const std::string& remedy);
  // True when the peer has closed its end: a drain for it may be given up.
  bool is_gone() const;
  std::uint64_t request() const { return request_; }

 private:
  const int socket_;
  const std::uint64_t request_;
};

class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // Answers one request, the "done" or "error" line included. `session` names the connection.
  virtual void on_request(ControlPeer& peer, std::uint64_t session, const Json& request) = 0;
  virtual void on_close(std::uint64_t session) = 0;
};

// What a dead service has left of its control server.
struct LeftControl {
  struct Connection {
    int socket = -1;
    std::uint64_t session = 0;  // 0: it has not been heard yet
  };
  int listener = -1;
  std::vector<Connection> connections;

  std::vector<std::uint64_t> sessions() const;
};
// Finds it among `open`, the numbers of this process's descriptors: by their labels, and a
// connection that the dead service had accepted and not labelled by its name.
LeftControl find_left_control(const KeptDescriptors& labels, std::span<const int> open);

class ControlServer {
 public:
  // The largest request stages files by name: a million of them, of 60 bytes each.
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;
  // A parsed request takes up to a hundred times its bytes in memory, so there is a limit of
  // values.
  static constexpr std::size_t kValuesMax = std::size_t{1} << 20;
  static constexpr std::size_t kConnectionsMax = 256;
  // The last places are for those who want to end the node, to store what it has, or to look at it.
  static constexpr std::size_t kLastPlaces = 8;
  // Where places run short, those who have asked nothing for so long lose theirs.
  static constexpr std::chrono::milliseconds kSilenceMax{1000};
  // The server waits so long at its end for clients that do not read their answers.
  static constexpr std::chrono::milliseconds kAnswerPatience{1000};

  // In front of the end of a line that its writer did not live to finish: it means nothing.
  static constexpr char kCancel = '\x18';

  // `labels`: those of the service's descriptors; null: nobody succeeds it.
  explicit ControlServer(ControlHandler& handler, KeptDescriptors* labels = nullptr)
      : handler_(handler), labels_(labels) {}
  ~ControlServer();

  Status start(const std::string& socket_path);
  // Instead of start(), for the successor of a service that died: listens on at the same name, and
  // goes on with each connection under the number that it has.
  Status adopt(const LeftControl& left);
  // The socket's name is gone: listens at `socket_path` from now on. While it runs, by the thread
  // that started it.
  Status listen_again(const std::string& socket_path);
  // Ends all conversations; requests under way are waited for, for kAnswerPatience also by clients
  // that do not read.
  void stop();

 private:
  // kUnheard -> kHeard by its thread, with its first request; kUnheard -> kGivenUp by the acceptor.
  enum class Hearing : std::uint8_t { kUnheard, kHeard, kGivenUp };
  struct Connection {
    KeptFd socket;
    std::uint64_t session = 0;
    std::thread thread;
    std::atomic<bool> done{false};
    std::atomic<Hearing> hearing{Hearing::kUnheard};
    const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
    bool is_last_place = false;
    // These are the thread's own.
    std::uint64_t last_request = 0;  // of those with numbers
    bool may_begin_cut = false;      // the first line may be the end of one
  };
  KeptFd labelled(UniqueFd fd, const KeptLabel& label) const;
  Status begin();
  void accept_loop();
  void accept_one();
  void wake() const;
  // Returns: whether there is a thread for it. One that has none is closed, and hears why.
  bool add(UniqueFd socket, std::uint64_t session, bool is_adopted);
  static void say_restarted(int socket);
  void converse(Connection& connection);
  bool take_lines(Connection& connection, std::string* received, std::size_t searched);
  // False when nothing more of the connection is answered.
  bool answer(Connection& connection, const std::string& line);
  static bool hear(Connection& connection);
  static bool may_ask(const Connection& connection, const Json& request);
  std::size_t count();
  void close_silent();
  void refuse(int socket);
  void shut_all(int directions);
  void join_finished(bool all);

  ControlHandler& handler_;
  KeptDescriptors* const labels_;
  KeptFd listener_;
  UniqueFd wake_event_;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::uint64_t last_session_ = 0;  // before the acceptor runs, then its own
  bool has_said_full_ = false;      // the acceptor's own
  std::mutex mutex_;
  std::condition_variable ended_;  // one of the conversations
  std::list<Connection> connections_;
};

}  // namespace cairn::node
