// SPDX-License-Identifier: Apache-2.0
//
// A conversation with a node service over its control socket: one JSON object per line each way.
//
// Thread safety: one thread at a time. Ownership: closes its descriptor.
//
//   ControlClient client(paths); const Json reply = client.request({{"command", "status"}}); const
//   Json stored = client.request({{"command", "drain"}}, [](const Json& p) { show(p); return true;
//   });
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
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
  // The two halves of request(), so that the caller can work in between. Answers come in the order
  // of the requests.
  void send(const Json& request);
  Json receive(const ProgressCallback& progress = nullptr);

  // Also wakes request() when this descriptor (a signalfd) is readable; -1 for none.
  void watch(int descriptor) { watched_descriptor_ = descriptor; }

  const NodePaths& node() const { return node_; }

 private:
  // The next line without its end; throws Failure when the connection is closed.
  // Returns: false when the callback gave up.
  bool read_line(const ProgressCallback& progress, std::string* line);
  [[noreturn]] void fail_disconnected() const;

  NodePaths node_;
  int descriptor_ = -1;
  int watched_descriptor_ = -1;
  std::string received_;  // bytes after the last complete line
};

}  // namespace cairn::cli
