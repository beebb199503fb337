// SPDX-License-Identifier: Apache-2.0
// A bound for the end of a service whose threads are told to stop: one of them may wait for a lock
// whose word names somebody who lives and does not hold it, because a stray store of a program has
// changed it. What can be stored is stored by then, and nothing more comes of waiting.
//
// Thread safety: made and destroyed by one thread. Ownership: owns a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cairn::node {

class EndBound {
 public:
  // Unless it is destroyed within `patience`, the process ends with `exit_status`.
  EndBound(std::chrono::seconds patience, int exit_status);
  ~EndBound();
  EndBound(const EndBound&) = delete;
  EndBound& operator=(const EndBound&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace cairn::node
