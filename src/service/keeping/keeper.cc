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

#include <deque>

#include "base/check.h"
#include "base/clock.h"

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
pid_t fork_patiently(bool is_successor) {
  constexpr int kTriesMax = 300;
  constexpr timespec kPause{0, 100'000'000};
  pid_t service = fork_with_descriptors();
  for (int tries = 1; service < 0 && is_successor && tries < kTriesMax; ++tries) {
    ::nanosleep(&kPause, nullptr);
    service = fork_with_descriptors();
  }
  return service;
}

// Into the node's log, which is standard error.
void say(const char* text, int signal) {
  (void)::fprintf(stderr, "cairn: the node's service was killed by signal %d (%s): %s\n", signal,
                  ::strsignal(signal), text);
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

class Deaths {
 public:
  explicit Deaths(const KeeperLimits& limits) : limits_(limits) {}
  // Notes one more. Returns whether there is use in another try.
  bool note(std::int64_t now_ns) {
    times_.push_back(now_ns);
    while (times_.front() < now_ns - limits_.within_ns) times_.pop_front();
    return times_.size() < limits_.deaths_max;
  }

 private:
  const KeeperLimits limits_;
  std::deque<std::int64_t> times_;
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

int keep_service(const KeeperLimits& limits, const std::function<int(Succession&)>& serve) {
  auto succession = Succession::begin();
  if (!succession) {
    (void)::fprintf(stderr, "cairn: %s\n", succession.status().message().c_str());
    return kFailed;
  }
  succession->keeper = ::getpid();
  ::prctl(PR_SET_NAME, "cairn-keeper");
  const KeeperSignals signals;
  Deaths deaths(limits);
  for (;;) {
    const pid_t service = fork_patiently(succession->is_successor());
    if (service < 0) {
      (void)::fprintf(stderr, "cairn: no process for the node's service: %s\n", ::strerror(errno));
      return kFailed;
    }
    if (service == 0) {
      signals.leave_to_service();
      return serve(*succession);
    }
    const int status = wait_for_end(service, signals);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    KeptLife& life = *succession->life;
    if (const int done = life.done.load(); done != 0) return done - 1;
    life.last_signal.store(WTERMSIG(status));
    life.last_end_ns.store(monotonic_ns());
    if (!deaths.note(life.last_end_ns.load())) {
      say("too often to try again", WTERMSIG(status));
      return kOfSignals + WTERMSIG(status);
    }
    life.restarts.fetch_add(1);
    say("another one goes on with what it had", WTERMSIG(status));
  }
}

}  // namespace cairn::node
