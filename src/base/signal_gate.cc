// SPDX-License-Identifier: Apache-2.0
#include "base/signal_gate.h"

#include <signal.h>

#include "base/system_call.h"

namespace cairn {

constinit thread_local SignalGate signal_gate{};

void deliver_deferred_signals() {
  // The kernel's signal set: one bit per signal.
  const std::uint64_t waiting = signal_gate.deferred;
  signal_gate.deferred = 0;
  sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, sys::word(&waiting), 0, sizeof waiting);
}

}  // namespace cairn
