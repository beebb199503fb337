// SPDX-License-Identifier: Apache-2.0
// Does for clients, in threads of its own, what takes as long as storing does, and answers them.
//
// Thread safety: submit() from any thread. Ownership: owns the askers until they are answered.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "service/write_back/asker.h"

namespace cairn::node {

class RequestWorker {
 public:
  static constexpr unsigned kThreads = 2;

  // Returns a value or -errno for the client.
  using Work = std::function<int()>;

  RequestWorker() = default;
  ~RequestWorker();
  RequestWorker(const RequestWorker&) = delete;
  RequestWorker& operator=(const RequestWorker&) = delete;

  void start();
  void stop();
  void submit(Asker asker, Work work);

 private:
  struct Request {
    Asker asker;
    Work work;
  };
  void work();

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
};

}  // namespace cairn::node
