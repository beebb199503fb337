// SPDX-License-Identifier: Apache-2.0
//
// A program whose signal handler writes to the file that the program itself writes to:
//   cairn_handler_worker FILE SECONDS
// Every line that was written is counted by its writer; at the end the file must hold just those.
// Also what sigaction() answers is compared with what was asked for. Exit status 0: all is well.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr char kOfHandler[] = "handler\n";
constexpr char kOfProgram[] = "program\n";
constexpr size_t kLine = sizeof kOfHandler - 1;

int log_file = -1;
volatile sig_atomic_t from_handler = 0;
volatile sig_atomic_t once = 0;
volatile sig_atomic_t value_seen = 0;

void fail(const char* what) {
  fprintf(stderr, "handler_worker: %s: %s\n", what, strerror(errno));
  exit(1);
}
void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

void on_alarm(int) {
  const int error = errno;
  if (write(log_file, kOfHandler, kLine) == static_cast<ssize_t>(kLine))
    from_handler = from_handler + 1;
  errno = error;
}
void on_once(int) { once = once + 1; }
void on_value(int, siginfo_t* info, void*) { value_seen = info->si_value.sival_int; }

void check_answers() {
  struct sigaction action = {};
  struct sigaction before = {};
  require(signal(SIGUSR1, on_once) == SIG_DFL, "the first handler follows the default");
  require(signal(SIGUSR1, SIG_DFL) == on_once, "signal() returns the handler before");
  action.sa_handler = on_once;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  require(sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  require(sigaction(SIGUSR1, nullptr, &before) == 0 && before.sa_handler == on_once &&
              (before.sa_flags & SA_SIGINFO) == 0 &&
              (static_cast<unsigned>(before.sa_flags) & SA_RESETHAND) != 0,
          "sigaction() returns what was set");
  raise(SIGUSR1);
  require(once == 1, "the handler runs");
  require(sigaction(SIGUSR1, nullptr, &before) == 0 && before.sa_handler == SIG_DFL,
          "a handler with SA_RESETHAND is gone after its call");
  action.sa_sigaction = on_value;
  action.sa_flags = SA_SIGINFO;
  require(sigaction(SIGUSR2, &action, nullptr) == 0, "sigaction");
  sigval value;
  value.sival_int = 4711;
  require(sigqueue(getpid(), SIGUSR2, value) == 0 && value_seen == 4711, "the value arrives");
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  check_answers();
  log_file = open(words[1], O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
  require(log_file >= 0, "open");
  require(signal(SIGALRM, on_alarm) == SIG_DFL, "signal");
  const itimerval often = {{0, 150}, {0, 150}};
  require(setitimer(ITIMER_REAL, &often, nullptr) == 0, "setitimer");
  const time_t end = time(nullptr) + atoi(words[2]);
  uint64_t from_program = 0;
  while (time(nullptr) < end) {
    for (int i = 0; i < 100; ++i) {
      require(write(log_file, kOfProgram, kLine) == static_cast<ssize_t>(kLine), "write");
      ++from_program;
    }
    if (from_program % 100'000 == 0) require(fsync(log_file) == 0, "fsync");
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  uint64_t found[2] = {0, 0};
  char line[kLine];
  for (off_t at = 0; pread(log_file, line, kLine, at) == static_cast<ssize_t>(kLine); at += kLine) {
    const bool of_program = memcmp(line, kOfProgram, kLine) == 0;
    require(of_program || memcmp(line, kOfHandler, kLine) == 0, "a torn line");
    ++found[of_program ? 1 : 0];
  }
  require(found[0] == static_cast<uint64_t>(from_handler), "lines of the handler are missing");
  require(found[1] == from_program, "lines of the program are missing");
  require(from_handler > 100, "the handler hardly ever ran");
  printf("%llu lines, %d of them from the handler\n",
         static_cast<unsigned long long>(found[0] + found[1]), static_cast<int>(from_handler));
  return 0;
}
