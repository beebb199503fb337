// SPDX-License-Identifier: Apache-2.0
// Keeps signal handlers out while a thread holds locks: a handler that writes to a buffered file
// must not wait for a lock that its own thread holds.
//
// Nothing is blocked beforehand, which would cost two system calls a write. A thread counts what it
// holds; the wrapper around the application's handlers (frontends/posix/signal_calls.cc) looks at
// the count, puts a signal that comes at the wrong moment back, blocked, and has it delivered when
// the count is 0 again. So a signal is late by the rest of a copy, as it is natively: the kernel
// does not interrupt reads and writes of files either.
//
// Thread safety: a thread and its signal handlers.
#pragma once

#include <cstdint>

namespace cairn {

struct SignalGate {
  std::uint32_t held = 0;
  // Bit n-1: signal n waits, blocked.
  std::uint64_t deferred = 0;
};
extern constinit thread_local SignalGate signal_gate;

// Lets the deferred signals in.
void deliver_deferred_signals();

inline void enter_signal_gate() {
  signal_gate.held = signal_gate.held + 1;
  __asm__ volatile("" ::: "memory");
}
inline void leave_signal_gate() {
  __asm__ volatile("" ::: "memory");
  const std::uint32_t left = signal_gate.held - 1;
  signal_gate.held = left;
  __asm__ volatile("" ::: "memory");
  if (__builtin_expect(left == 0 && signal_gate.deferred != 0, 0)) deliver_deferred_signals();
}

// For a scope that holds something which is no lock.
class SignalGateGuard {
 public:
  SignalGateGuard() { enter_signal_gate(); }
  ~SignalGateGuard() { leave_signal_gate(); }
  SignalGateGuard(const SignalGateGuard&) = delete;
  SignalGateGuard& operator=(const SignalGateGuard&) = delete;
};

}  // namespace cairn
