// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/signal_watch.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/wait_word.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

// What job systems, shells and people send. SIGCHLD tells that the program has ended; SIGCONT and
// the stop signals keep their meaning, so that a run can be suspended as a whole.
constexpr int kWatchedSignals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                   SIGUSR2, SIGALRM, SIGXCPU, SIGCHLD, SIGWINCH};

}  // namespace

SignalWatch::SignalWatch() {
  struct sigaction previous{};
  ::sigaction(SIGPIPE, nullptr, &previous);
  pipe_signal_was_default_ = previous.sa_handler == SIG_DFL;
  ::signal(SIGPIPE, SIG_IGN);
  ::sigemptyset(&watched_);
  for (const int number : kWatchedSignals) {
    ::sigaction(number, nullptr, &previous);
    if (number == SIGCHLD) {
      // A parent may have left SIGCHLD ignored, and then no status of the program could be waited
      // for.
      if (previous.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
    } else if (previous.sa_handler == SIG_IGN) {
      continue;
    }
    ::sigaddset(&watched_, number);
  }
  ::sigprocmask(SIG_BLOCK, &watched_, &original_mask_);
  descriptor_ = ::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw Failure(std::string("signalfd: ") + std::strerror(errno));
}

SignalWatch::~SignalWatch() { ::close(descriptor_); }

std::optional<ReceivedSignal> SignalWatch::next() {
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return ReceivedSignal{.number = static_cast<int>(info.ssi_signo),
                        .from_terminal = info.ssi_code == SI_KERNEL};
}

ReceivedSignal SignalWatch::wait() {
  siginfo_t info{};
  while (true) {
    const int number = ::sigwaitinfo(&watched_, &info);
    if (number <= 0) continue;
    const bool tells_of_wait =
        number == SIGWINCH && info.si_code == SI_QUEUE && info.si_value.sival_int == kWaitWord;
    return {.number = number,
            .from_terminal = info.si_code == SI_KERNEL,
            .tells_of_wait = tells_of_wait};
  }
}

}  // namespace cairn::cli
