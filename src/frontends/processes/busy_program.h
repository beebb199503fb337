// SPDX-License-Identifier: Apache-2.0
// The start of a program that was just written: the service may still have it open for writing, and
// the kernel refuses it then (ETXTBSY, execve(2)). The service gives it up in a moment, on a busy
// machine in some more; one that somebody really writes to stays refused.
//
// Thread safety: any thread, and the child of a vfork().
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/system_call.h"

namespace cairn {

// Calls `start()`, which returns 0 or an error number, until it is not refused for that, for half a
// second at most. `ask()` asks the service to give the program up: its descriptor may have arrived
// there after the last time. Returns: the last result.
template <typename Start, typename Ask>
int start_when_free(Start&& start, Ask&& ask) {
  constexpr int kTries = 250;
  constexpr int kTriesPerQuestion = 25;
  constexpr long kPauseNs = 2'000'000;
  int error = start();
  for (int again = 0; error == ETXTBSY && again < kTries; ++again) {
    if (again % kTriesPerQuestion == 0) ask();
    const timespec pause{0, kPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    error = start();
  }
  return error;
}

}  // namespace cairn
