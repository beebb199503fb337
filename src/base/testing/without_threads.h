// SPDX-License-Identifier: Apache-2.0
// A process that can start no thread, as under a limit of the system.
//
// Thread safety: none; the calling test has no other thread.
#pragma once

#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace cairn::testing {

// An account of nobody's, which the limit applies to.
inline constexpr unsigned kNobody = 65534;

// Runs it in a child of that account. Returns what it returns (0 to 99), 100 where there is no such
// child, 101 where it threw. Requires: root.
inline int run_without_threads(const std::function<int()>& work) {
  constexpr int kNoChild = 100;
  constexpr int kThrown = 101;
  const pid_t child = ::fork();
  if (child < 0) return kNoChild;
  if (child == 0) {
    const rlimit one{1, 1};
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0 ||
        ::setrlimit(RLIMIT_NPROC, &one) != 0) {
      ::_exit(kNoChild);
    }
    try {
      ::_exit(work());
    } catch (...) {
      ::_exit(kThrown);
    }
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kNoChild;
  return WEXITSTATUS(status);
}

}  // namespace cairn::testing
