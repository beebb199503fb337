// SPDX-License-Identifier: Apache-2.0
// The command line's way in: control.sock, one JSON object per line each way, a thread per
// connection.
//
// Connections are few (one per run, one per command) and sleep in recv(2), so threads are cheap
// here and a drain can take its time without holding up anybody else.
//
// Thread safety: start() and stop() by the composing thread. Ownership: owns connections and their
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "service/control/json.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// One connection, as the code that answers sees it.
class ControlPeer {
 public:
  explicit ControlPeer(int socket) : socket_(socket) {}
  // Sends one line. Returns false when the peer is gone.
  bool send(const Json& line);
  // Sends the line that ends a request in vain: what is wrong, and what to do.
  void fail(const std::string& message, const std::string& remedy);
  // True when the peer has closed its end: a drain for it may be given up.
  bool is_gone() const;

 private:
  const int socket_;
};

class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // Answers one request, the "done" or "error" line included. `session` names the connection.
  virtual void on_request(ControlPeer& peer, std::uint64_t session, const Json& request) = 0;
  virtual void on_close(std::uint64_t session) = 0;
};

class ControlServer {
 public:
  // Commands name files: a hundred thousand of them, each with a long path, are well below this.
  static constexpr std::size_t kLineBytesMax = std::size_t{256} << 20;
  static constexpr std::size_t kConnectionsMax = 256;

  explicit ControlServer(ControlHandler& handler) : handler_(handler) {}
  ~ControlServer();

  Status start(const std::string& socket_path);
  // The socket's name is gone: listens at `socket_path` from now on. While it runs, by the thread
  // that started it.
  Status listen_again(const std::string& socket_path);
  // Ends all conversations; requests under way are waited for.
  void stop();

 private:
  struct Connection {
    UniqueFd socket;
    std::thread thread;
    std::atomic<bool> done{false};
  };
  void accept_loop();
  void wake() const;
  void converse(Connection& connection, std::uint64_t session);
  void answer(Connection& connection, std::uint64_t session, const std::string& line);
  void join_finished(bool all);

  ControlHandler& handler_;
  UniqueFd listener_;
  UniqueFd wake_event_;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::mutex mutex_;
  std::list<Connection> connections_;
};

}  // namespace cairn::node
