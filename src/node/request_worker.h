// SPDX-License-Identifier: Apache-2.0
// Stores an object on a client's request (kFlush) and answers it: for a process that may only read
// the file.
//
// Thread safety: submit() from any thread. Ownership: owns the connections that wait for an answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "node/flusher.h"
#include "node/unique_fd.h"

namespace cairn::node {

class RequestWorker {
 public:
  static constexpr unsigned kThreads = 2;

  explicit RequestWorker(Flusher& flusher) : flusher_(flusher) {}
  ~RequestWorker();

  void start();
  void stop();
  void submit(UniqueFd connection, ObjectIndex object, bool durable);

 private:
  struct Request {
    UniqueFd connection;
    ObjectIndex object;
    bool durable;
  };
  void work();

  Flusher& flusher_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
};

}  // namespace cairn::node
