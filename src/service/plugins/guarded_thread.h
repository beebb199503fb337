// SPDX-License-Identifier: Apache-2.0
// A thread for code that may throw or never return: each job is waited for no longer than a limit.
//
// A thread cannot be ended without what it holds. One whose job is late is therefore left alone: it
// loses its share of the processor to everybody else (SCHED_IDLE) and ends when the job does; the
// next job gets a new thread. Until then no job is taken.
//
// Thread safety: run() from any thread; of two at once, one gets kBusy. Ownership: a late job
// outlives the call and this object, so it owns what it touches.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace cairn {

class GuardedThread {
 public:
  enum class Outcome {
    kDone,
    kThrew,    // `thrown` says what
    kLate,     // still running
    kBusy,     // an earlier job is still running; this one was not begun
    kNoThread  // the system gave none
  };

  GuardedThread();
  // Waits for an idle thread to end, and for no job.
  ~GuardedThread();
  GuardedThread(const GuardedThread&) = delete;
  GuardedThread& operator=(const GuardedThread&) = delete;

  Outcome run(std::function<void()> job, std::chrono::milliseconds limit, std::string* thrown);

 private:
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace cairn
