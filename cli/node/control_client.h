// SPDX-License-Identifier: Apache-2.0
//
// A conversation with a node service over its control socket: one JSON object per line each way.
//
// Thread safety: one thread at a time. Ownership: closes its descriptor.
//
//   ControlClient client(paths); const Json reply = client.request({{"command", "status"}}); const
//   Json stored = client.request({{"command", "drain"}}, [](const Json& p) { show(p); return true;
//   });
//
// A service that is killed has a successor, which goes on with the connection and says so by a line
// of kind "restarted". What has not been answered by then is sent again, under the same number
// (src/service/control/control_server.h has the table of what may happen).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/node/run_directory.h"

namespace cairn::cli {

using Json = nlohmann::json;

class ControlClient {
 public:
  // Called for each "progress" line, and with a null Json when `watched_descriptor` becomes
  // readable.
  // Returns: false to give up waiting.
  using ProgressCallback = std::function<bool(const Json& progress)>;

  // Errors: throws Failure naming the node when nobody answers or the node is another user's.
  explicit ControlClient(const NodePaths& node);
  ~ControlClient();
  ControlClient(ControlClient&& other) noexcept;
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  ControlClient& operator=(ControlClient&&) = delete;

  // Sends one request and waits for its "done" line, which is returned; a null Json when the
  // callback gave up.
  // Errors: an "error" line or a closed connection throw Failure.
  Json request(const Json& request, const ProgressCallback& progress = nullptr) {
    send(request);
    return receive(progress);
  }
  // The two halves of request(), so that the caller can work in between: one request at a time.
  // Where one is given up and another sent, its late answer is passed over.
  void send(const Json& request);
  Json receive(const ProgressCallback& progress = nullptr);

  // Also wakes request() when this descriptor (a signalfd) is readable; -1 for none.
  void watch(int descriptor) { watched_descriptor_ = descriptor; }

  const NodePaths& node() const { return node_; }

 private:
  // The request that has not been answered yet, as it is sent.
  struct Unanswered {
    uint64_t number = 0;
    std::string text;
    bool is_answered_at_once = false;  // by a service that is there
  };
  void send_text(const std::string& text);
  // Takes a line that says nothing of the request: false when it does.
  bool take_aside(const std::string& line, const Json& reply);
  void say_that_nobody_answers();
  // The next line without its end; throws Failure when the connection is closed.
  // Returns: false when the callback gave up.
  bool read_line(const ProgressCallback& progress, std::string* line);
  [[noreturn]] void fail_disconnected() const;

  NodePaths node_;
  int descriptor_ = -1;
  int watched_descriptor_ = -1;
  std::string received_;  // bytes after the last complete line
  uint64_t last_number_ = 0;
  std::optional<Unanswered> unanswered_;
  bool has_said_slow_ = false;
};

}  // namespace cairn::cli
