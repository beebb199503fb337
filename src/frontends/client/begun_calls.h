// SPDX-License-Identifier: Apache-2.0
// Calls of one thread that have begun and not ended, with what they have taken. A signal handler
// that jumps out of a call (siglongjmp) ends it without a word: the thread's next call finds by the
// frames on the stack what was left, and gives it back.
//
//   frame                    the call
//   above the asker's        goes on: the asker runs in a handler that interrupted it
//   the asker's, or below    is over
//
// On a handler's own stack (sigaltstack) the order says nothing, and nothing is given back there.
//
// Thread safety: one thread and its signal handlers. Ownership: static, in each thread.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>

#include "base/system_call.h"

namespace cairn {

template <typename Taken>
class BegunCalls {
 public:
  // Nested deeper than that, calls are not followed.
  static constexpr unsigned kMost = 4;

  // Calls give_back(Taken) for each call whose frame is `frame` or below it.
  template <typename GiveBack>
  void end_left(const void* frame, GiveBack&& give_back) {
    while (__builtin_expect(count_ > 0, 0) && calls_[count_ - 1].frame <= frame) {
      if (is_on_own_stack()) return;
      const Taken taken = calls_[--count_].taken;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      give_back(taken);
    }
  }
  // False: it is not followed.
  bool begin(const void* frame, const Taken& taken) {
    if (count_ == kMost) return false;
    calls_[count_] = Call{frame, taken};
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++count_;
    return true;
  }
  // Requires: it is followed. False: it was given back already.
  bool end(const void* frame) {
    if (count_ == 0 || calls_[count_ - 1].frame != frame) return false;
    --count_;
    return true;
  }

 private:
  struct Call {
    const void* frame = nullptr;
    Taken taken{};
  };

  static bool is_on_own_stack() {
    stack_t now{};
    return sys::call(SYS_sigaltstack, 0, sys::word(&now)) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
  }

  std::array<Call, kMost> calls_{};
  unsigned count_ = 0;
};

}  // namespace cairn
