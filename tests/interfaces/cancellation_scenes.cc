// SPDX-License-Identifier: Apache-2.0
// Cancellation points, and calls that a handler jumps out of.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "scene.h"

using namespace scene;

namespace {

struct Call {
  const char* name;
  void (*call)();
};

int fd = -1;
char bytes[8];
iovec part{bytes, 5};
std::atomic<bool> has_called;

const Call kCalls[] = {
    {"read", [] { (void)!read(fd, bytes, 0); }},
    {"write", [] { (void)!write(fd, bytes, 0); }},
    {"pread", [] { (void)!pread(fd, bytes, 5, 0); }},
    {"pwrite", [] { (void)!pwrite(fd, bytes, 5, 0); }},
    {"readv", [] { (void)!readv(fd, &part, 0); }},
    {"writev", [] { (void)!writev(fd, &part, 0); }},
    {"preadv", [] { (void)!preadv(fd, &part, 1, 0); }},
    {"pwritev", [] { (void)!pwritev(fd, &part, 1, 0); }},
    {"fsync", [] { fsync(fd); }},
    {"fdatasync", [] { fdatasync(fd); }},
    {"open and close", [] { close(open("f", O_RDONLY)); }},
};

void* call_for_ever(void* argument) {
  for (const Call& call = *static_cast<const Call*>(argument);;) {
    call.call();
    has_called = true;
  }
}

sigjmp_buf back;
void jump_back(int signal) { siglongjmp(back, signal); }

void give_time(long micros) {
  const itimerval soon{{0, 0}, {0, micros}};
  setitimer(ITIMER_REAL, &soon, nullptr);
}

[[gnu::noinline]] void jump_out_of_an_open() {
  if (sigsetjmp(back, 1) != 0) return;
  give_time(2000);
  open("fifo", O_RDONLY);
}

[[gnu::noinline]] void jump_out_of_a_sync() {
  if (sigsetjmp(back, 1) != 0) return;
  give_time(500);
  for (;;) {
    (void)!pwrite(fd, "x", 1, 0);
    fsync(fd);
  }
}

}  // namespace

SCENE(threads_are_cancelled) {
  fd = make_file("f", "0123456789");
  for (const Call& call : kCalls) {
    has_called = false;
    pthread_t thread{};
    pthread_create(&thread, nullptr, call_for_ever, const_cast<Call*>(&call));
    while (!has_called) usleep(100);
    say(call.name, pthread_cancel(thread));
    void* result = nullptr;
    pthread_join(thread, &result);
    say("cancelled", result == PTHREAD_CANCELED);
  }
  say_file("f");
}

// As programs give a call a time limit.
SCENE(jumps_out_of_opens_and_syncs) {
  fd = make_file("f", "0123456789");
  say("fifo", mkfifo("fifo", 0644));
  signal(SIGALRM, jump_back);
  for (int round = 0; round < 20; ++round) jump_out_of_an_open();
  for (int round = 0; round < 50; ++round) jump_out_of_a_sync();
  say("write", pwrite(fd, "y", 1, 1));
  say("sync", fsync(fd));
  for (int number = 0; number < 20; ++number) {
    const int other = open_file("gone");
    say("write", write(other, "abc", 3));
    say("unlink", unlink("gone"));
    close(other);
  }
  say_file("f");
}
