// SPDX-License-Identifier: Apache-2.0
// Bounds the time that a service takes to stop its threads. One of them may wait for a lock whose
// word names a living process that does not hold it, because a stray store of a program has changed
// the word. Everything that can be stored is stored by then, and waiting gains nothing.
//
// Thread safety: made and destroyed by one thread. Ownership: owns a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "service/keeping/kept_life.h"

namespace cairn::node {

class EndBound {
 public:
  // Unless it is destroyed within `patience`, the process ends with `exit_status`, as one whose
  // work is done. Where there is no thread to be had, nothing is bounded.
  EndBound(std::chrono::seconds patience, int exit_status, KeptLife& life);
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
