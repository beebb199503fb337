// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/patience.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/terminal/failure.h"

namespace cairn::cli {

Done do_in_time(const std::function<bool()>& work) {
  constexpr int kPatienceMs = 2000;
  const pid_t worker = ::fork();
  if (worker < 0) return Done::kBadly;
  if (worker == 0) {
    // Others wait for the ends of what this process has open: the node for that of a pipe, and who
    // reads the program's output.
    (void)::close_range(0, UINT_MAX, 0);
    ::_exit(work() ? kExitOk : kExitRefused);
  }
  for (int waited = 0; waited < kPatienceMs; ++waited) {
    int status = 0;
    const pid_t ended = ::waitpid(worker, &status, WNOHANG);
    if (ended != 0) return ended == worker && status == 0 ? Done::kWell : Done::kBadly;
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  // What waits in the kernel for a device dies when that answers.
  (void)::kill(worker, SIGKILL);
  return Done::kNotInTime;
}

}  // namespace cairn::cli
