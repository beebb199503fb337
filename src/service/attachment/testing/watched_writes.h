// SPDX-License-Identifier: Apache-2.0
// Stops a piece of code in a child process after each write to a word of shared memory, so that a
// test can look at what a death right there would leave. The processor watches the word (a debug
// register), so the code runs at full speed in between, and nothing depends on time.
//
// Thread safety: none; the caller has one thread. Ownership: the child is gone when this returns.
#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace cairn::testing {

struct WatchedWrites {
  bool is_watched = false;  // false: this machine lets nobody watch
  unsigned count = 0;
  bool is_whole = false;  // the code has ended, and each look was good
};

#if defined(__x86_64__)
// Whether the processor stops the child after a write to the 4 bytes at `word` from now on.
inline bool watch_word(pid_t child, const void* word) {
  constexpr std::uintptr_t kOn = 1;
  constexpr std::uintptr_t kWritesOfFourBytes = std::uintptr_t{1} << 16 | std::uintptr_t{3} << 18;
  const auto poke = [child](unsigned index, std::uintptr_t value) {
    const std::size_t at = offsetof(user, u_debugreg) + index * sizeof(user::u_debugreg[0]);
    return ::ptrace(PTRACE_POKEUSER, child, at, value) == 0;
  };
  return poke(0, reinterpret_cast<std::uintptr_t>(word)) && poke(7, kOn | kWritesOfFourBytes);
}
#else
inline bool watch_word(pid_t, const void*) { return false; }
#endif

// `code` calls its argument twice: where the watch begins, and where it ends. `is_good` looks after
// each write, in the caller's process.
inline WatchedWrites watch_writes(
    const void* word, const std::function<void(const std::function<void()>& mark)>& code,
    const std::function<bool()>& is_good) {
  WatchedWrites writes;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    code([] { ::raise(SIGSTOP); });
    ::_exit(2);
  }
  int signal = 0;  // that has stopped the child; 0: it has ended
  const auto await_stop = [&] {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    return signal != 0;
  };
  writes.is_watched = await_stop() && watch_word(child, word);
  bool goes_on = writes.is_watched;
  while (goes_on && ::ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0 && await_stop()) {
    writes.is_whole = signal == SIGSTOP;
    goes_on = signal == SIGTRAP && is_good();
    if (goes_on) ++writes.count;
  }
  ::kill(child, SIGKILL);
  if (signal != 0) ::waitpid(child, nullptr, 0);
  return writes;
}

}  // namespace cairn::testing
