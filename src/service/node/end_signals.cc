// SPDX-License-Identifier: Apache-2.0
#include "service/node/end_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "service/process/log.h"

namespace cairn::node {

UniqueFd EndSignals::watch() {
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  // A file size limit is an error of one file, to be reported, and no reason to die.
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  return UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

void EndSignals::read_all() {
  signalfd_siginfo info{};
  while (::read(source_.get(), &info, sizeof info) == sizeof info) {
    log::info("signal {} from process {}", info.ssi_signo, info.ssi_pid);
    const bool is_passed_on = keeper_ != 0 && static_cast<pid_t>(info.ssi_pid) == keeper_;
    ++(is_passed_on ? passed_on_ : straight_);
  }
}

bool EndSignals::is_asking() {
  read_all();
  CAIRN_DCHECK(taken_ <= std::max(straight_, passed_on_));
  return taken_ < std::max(straight_, passed_on_);
}

bool EndSignals::take() {
  if (!is_asking()) return false;
  ++taken_;
  return true;
}

}  // namespace cairn::node
