// SPDX-License-Identifier: Apache-2.0
#include "service/keeping/keeper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"

#if defined(__x86_64__)
#define CAIRN_RETURN_ADDRESS "rip"
#elif defined(__aarch64__)
#define CAIRN_RETURN_ADDRESS "x30"
#endif

namespace cairn::node {
namespace {

constexpr int kFailed = 1;
constexpr int kOfSignals = 128;

// fork(2) with a shared table of descriptors. The C library has no such call; nothing of its own
// needs to know, because there is one thread.
pid_t fork_with_descriptors() {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
}

// The machine may be short of memory, which is what services are killed for: a successor is worth a
// wait, because what is dirty has nobody else.
pid_t fork_patiently(unsigned tries_max) {
  constexpr timespec kPause{0, 100'000'000};
  pid_t service = fork_with_descriptors();
  for (unsigned tries = 1; service < 0 && tries < tries_max; ++tries) {
    ::nanosleep(&kPause, nullptr);
    service = fork_with_descriptors();
  }
  return service;
}

// Into the node's log, which is standard error.
void say(const char* text, int signal) {
  const char* name = signal != 0 ? ::strsignal(signal) : "with its keeper, nobody knows which";
  (void)::fprintf(stderr, "cairn: the node's service was killed by signal %d (%s): %s\n", signal,
                  name, text);
}

// The signal that a child died of, of its status as of waitpid(2). One that has exited without the
// word that its work is done was ended by a library, say, and is as dead as one that has aborted.
int signal_of(int status) {
  if (!WIFEXITED(status)) return WTERMSIG(status);
  (void)::fprintf(stderr, "cairn: a process of the node exited with %d in the midst of its work\n",
                  WEXITSTATUS(status));
  return SIGABRT;
}

// The signals that are the keeper's to wait for. They stay blocked in the child until it takes them
// itself, so none that comes meanwhile is lost.
class KeeperSignals {
 public:
  KeeperSignals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&set_, number);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
  }
  int wait() const {
    for (;;) {
      const int number = ::sigwaitinfo(&set_, nullptr);
      if (number > 0) return number;
    }
  }
  // In the child, which waits for children of its own.
  void leave_to_service() const {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    if (::sigismember(&before_, SIGCHLD) == 0) ::sigprocmask(SIG_UNBLOCK, &child, nullptr);
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

// How the child has ended, as of waitpid(2). What a user wants of the keeper he wants of the
// service.
int wait_for_end(pid_t service, const KeeperSignals& signals) {
  for (;;) {
    int status = 0;
    if (::waitpid(service, &status, WNOHANG) == service) return status;
    const int number = signals.wait();
    if (number != SIGCHLD) ::kill(service, number);
  }
}

// Notes one more death. Returns whether there is use in another try. The times are in kept memory,
// because keepers die, too.
bool note_death(KeptLife& life, int signal, const KeeperLimits& limits) {
  const std::int64_t now = monotonic_ns();
  life.last_signal.store(signal);
  life.last_end_ns.store(now);
  life.death_ns[life.restarts.load() % KeptLife::kDeathsMax].store(now);
  unsigned deaths = 0;
  for (const std::atomic<std::int64_t>& death : life.death_ns)
    deaths += death.load() != 0 && death.load() >= now - limits.within_ns ? 1 : 0;
  return deaths < limits.deaths_max;
}

class Keeper {
 public:
  Keeper(const KeeperLimits& limits, Succession& succession, const KeptWork& work)
      : limits_(limits), succession_(succession), work_(work) {
    succession_.keeper = ::getpid();
    ::prctl(PR_SET_NAME, "cairn-keeper");
  }

  int keep() {
    for (;;) {
      const auto status = run(work_.serve);
      if (is_child_) return *status;
      if (!status) return succession_.is_successor() ? rescue_here() : kFailed;
      if (const int done = succession_.life->done.load(); done != 0) return done - 1;
      const int signal = signal_of(*status);
      if (!goes_on_after(signal)) return rescue(signal);
    }
  }

  // A service has died. Returns whether another one is to follow.
  bool goes_on_after(int signal) {
    KeptLife& life = *succession_.life;
    const bool goes_on = note_death(life, signal, limits_);
    CAIRN_CRASH_POINT("keeper.death-noted");
    life.restarts.fetch_add(1);
    CAIRN_CRASH_POINT("keeper.succeeding");
    say(goes_on ? "another one goes on with what it had" : "too often to try again", signal);
    return goes_on;
  }

  // What the last service left, by those who need less than a service does.
  int rescue(int signal) {
    KeptLife& life = *succession_.life;
    for (unsigned tries = 0; work_.rescue && tries < limits_.rescues_max; ++tries) {
      life.rescues.fetch_add(1);
      const auto status = run(work_.rescue);
      if (is_child_) return *status;
      if (!status) return be_the_rescue();
      if (const int done = life.done.load(); done != 0) return done - 1;
      signal = signal_of(*status);
      (void)::fprintf(stderr, "cairn: a rescue was killed by signal %d (%s)\n", signal,
                      ::strsignal(signal));
    }
    return kOfSignals + signal;
  }

 private:
  // Returns how the child ended, as of waitpid(2); none where there is no child to be had. In the
  // child, what `work` returned.
  std::optional<int> run(const std::function<int(Succession&)>& work) {
    const pid_t child = fork_patiently(succession_.is_successor() ? limits_.fork_tries_max : 1);
    if (child < 0) {
      (void)::fprintf(stderr, "cairn: no process for the node's service: %s\n", ::strerror(errno));
      return std::nullopt;
    }
    if (child != 0) return wait_for_end(child, signals_);
    is_child_ = true;
    signals_.leave_to_service();
    return do_work(work);
  }

  // An exception ends the process by a signal, at the place that throws it: that is a death, and
  // the next process stores what is dirty. A handler in some caller (and noexcept is one) would
  // have destructors run first, which close the descriptors of the keeper and of the next service,
  // too. So the unwinder, in search of a handler, hears that this function has no caller.
  [[gnu::noinline]] int do_work(const std::function<int(Succession&)>& work) {
    asm volatile(".cfi_undefined " CAIRN_RETURN_ADDRESS);
    const int status = work(succession_);
    succession_.life->done.store(1 + status);
    return status;
  }

  // Nobody else can: the keeper has all that a rescue needs.
  int rescue_here() {
    if (!work_.rescue) return kFailed;
    succession_.life->rescues.fetch_add(1);
    return be_the_rescue();
  }

  // No other rescue follows one that its alarm ends, so this one waits for the store.
  int be_the_rescue() {
    (void)::signal(SIGALRM, SIG_IGN);
    return do_work(work_.rescue);
  }

  const KeeperLimits& limits_;
  Succession& succession_;
  const KeptWork& work_;
  const KeeperSignals signals_;
  bool is_child_ = false;
};

}  // namespace

Result<Succession> Succession::begin() {
  auto memory = KeptMemory::create();
  if (!memory) return memory.status();
  Succession succession;
  succession.memory = std::move(memory.value());
  succession.life = succession.memory.take<KeptLife>(1).data();
  return succession;
}

Result<Succession> Succession::of_dead(int memory_fd) {
  auto memory = KeptMemory::open(memory_fd);
  if (!memory) return memory.status();
  Succession succession;
  succession.memory = std::move(memory.value());
  succession.life = succession.memory.take<KeptLife>(1).data();
  return succession;
}

int keep_service(const KeeperLimits& limits, const KeptWork& work) {
  auto succession = Succession::begin();
  if (!succession) {
    (void)::fprintf(stderr, "cairn: %s\n", succession.status().message().c_str());
    return kFailed;
  }
  return Keeper(limits, *succession, work).keep();
}

int keep_successor(const KeeperLimits& limits, Succession succession, const KeptWork& work) {
  CAIRN_CHECK(succession.life != nullptr);
  Keeper keeper(limits, succession, work);
  // Nobody has waited for the service, so nobody knows what it died of.
  return keeper.goes_on_after(0) ? keeper.keep() : keeper.rescue(SIGKILL);
}

}  // namespace cairn::node
