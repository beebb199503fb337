// SPDX-License-Identifier: Apache-2.0
// SIGSEGV and SIGBUS that have nothing to do with a file: handlers and default actions are as
// without Cairn, whoever sets them and in whatever order, and bad addresses never get to them. Also
// handlers that jump out of calls: nothing stays locked, no signal blocked.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "scene.h"

using namespace scene;

namespace {

constexpr std::size_t kPage = 4096;

char* map_page(int protection) {
  void* memory = mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return static_cast<char*>(memory);
}

char* bad_page() {
  static char* const page = map_page(PROT_NONE);
  return page;
}

char* page_of_cut_file() {
  const int fd = open_file("cut", O_RDWR | O_CREAT | O_TRUNC);
  if (ftruncate(fd, kPage) != 0) abort();
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED || ftruncate(fd, 0) != 0) abort();
  close(fd);
  return static_cast<char*>(memory);
}

void touch(char* place) { *static_cast<volatile char*>(place) = 1; }

// Runs `body` in a child and says how that ended.
template <typename Body>
void in_child(const char* what, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(10);
    body();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) abort();
  if (WIFSIGNALED(status)) {
    say_text(what, sigabbrev_np(WTERMSIG(status)));
  } else {
    say(what, WEXITSTATUS(status));
  }
}

// Uses a buffered file with addresses that are good and others that are not.
void use_file() {
  const int fd = make_file("f", "0123456789");
  say("good pwrite", pwrite(fd, "ab", 2, 4));
  say("bad pwrite", pwrite(fd, bad_page(), 2, 4));
  say("bad pread", pread(fd, bad_page(), 2, 4));
  say("bad write", write(fd, page_of_cut_file(), 3));
  char bytes[10] = {};
  say("good read", read(fd, bytes, sizeof bytes));
  say_bytes("bytes", bytes, sizeof bytes);
  close(fd);
}

void say_action(const char* what, const struct sigaction& action) {
  const char* handler = action.sa_handler == SIG_DFL   ? "default"
                        : action.sa_handler == SIG_IGN ? "ignored"
                                                       : "a handler";
  std::printf("%s: %s, flags %x, mask %d%d%d\n", what, handler,
              static_cast<unsigned>(action.sa_flags), sigismember(&action.sa_mask, SIGUSR1),
              sigismember(&action.sa_mask, SIGSEGV), sigismember(&action.sa_mask, SIGBUS));
}

void say_actions(const char* what) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    say_action(what, action);
  }
}

sigjmp_buf back;
void jump_back(int signal) { siglongjmp(back, signal); }

void on_details(int signal, siginfo_t* info, void*) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::printf("%s, code %d, at the page %d, blocked %d%d%d\n", sigabbrev_np(signal), info->si_code,
              info->si_addr == bad_page(), sigismember(&blocked, SIGUSR1),
              sigismember(&blocked, SIGSEGV), sigismember(&blocked, SIGBUS));
  siglongjmp(back, signal);
}
void open_page(int, siginfo_t* info, void*) {
  mprotect(info->si_addr, kPage, PROT_READ | PROT_WRITE);
}

void set_handler(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaddset(&action.sa_mask, SIGUSR1);
  if (sigaction(signal, &action, nullptr) != 0) abort();
}

void say_blocked(const char* what) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  int count = 0;
  for (int signal = 1; signal < SIGRTMIN; ++signal) count += sigismember(&blocked, signal);
  say(what, count);
}

// Goes on until there is no stack left, or no number.
int overflow(volatile char* before, unsigned depth) {
  volatile char frame[kPage];
  frame[0] = before == nullptr ? 1 : before[0];
  return depth == 0 ? 0 : overflow(frame, depth - 1) + frame[0];
}

}  // namespace

SCENE(actions_are_shown_as_they_were_set) {
  say_actions("at first");
  use_file();
  say_actions("after a file");
  struct sigaction action = {};
  struct sigaction before = {};
  for (const int flags :
       {0, SA_SIGINFO | SA_ONSTACK, static_cast<int>(SA_RESETHAND) | SA_NODEFER}) {
    action.sa_handler = jump_back;
    action.sa_flags = flags;
    sigaddset(&action.sa_mask, SIGBUS);
    say("sigaction", sigaction(SIGSEGV, &action, &before));
    say_action("before", before);
    say_actions("set");
  }
  say("signal", signal(SIGSEGV, SIG_IGN) == jump_back);
  say("signal", signal(SIGSEGV, SIG_DFL) == SIG_IGN);
  say("signal", signal(SIGSEGV, jump_back) == SIG_DFL);
  say("signal", signal(SIGSEGV, SIG_DFL) == jump_back);
  say_actions("at last");
}

SCENE(default_actions_end_the_program) {
  use_file();
  in_child("a fault", [] { touch(bad_page()); });
  in_child("a cut mapping", [] { touch(page_of_cut_file()); });
  in_child("raise", [] { raise(SIGSEGV); });
  in_child("kill", [] { kill(getpid(), SIGBUS); });
  in_child("a fault after a handler", [] {
    signal(SIGSEGV, jump_back);
    signal(SIGSEGV, SIG_DFL);
    touch(bad_page());
  });
  in_child("a fault of a blocked signal", [] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    touch(bad_page());
  });
  in_child("a fault of a blocked signal with a handler", [] {
    signal(SIGSEGV, jump_back);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    touch(bad_page());
  });
  in_child("a blocked signal that is sent", [] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    raise(SIGSEGV);
    say("still here", 1);
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  });
  in_child("an ignored signal", [] {
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
    say("still here", 1);
    touch(bad_page());
  });
  in_child("a stack that is full", [] { overflow(nullptr, 1U << 30); });
}

SCENE(handlers_get_what_is_not_of_a_file) {
  for (const int flags : {0, SA_ONSTACK, SA_NODEFER, static_cast<int>(SA_RESETHAND)}) {
    in_child("handler", [=] {
      set_handler(SIGSEGV, on_details, flags);
      set_handler(SIGBUS, on_details, flags);
      use_file();
      for (int round = 0; round < 2; ++round) {
        if (sigsetjmp(back, 1) == 0) touch(bad_page());
        say_blocked("blocked");
        use_file();
      }
      if (sigsetjmp(back, 1) == 0) raise(SIGBUS);
      if (sigsetjmp(back, 1) == 0) touch(page_of_cut_file());
      say_blocked("blocked");
    });
  }
  in_child("a fault that is mended", [] {
    set_handler(SIGSEGV, open_page, 0);
    char* page = map_page(PROT_NONE);
    touch(page);
    say("byte", *page);
    use_file();
  });
  in_child("a stack that is full", [] {
    stack_t stack = {};
    stack.ss_size = 64 * 1024;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = jump_back;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    if (sigsetjmp(back, 1) == 0) overflow(nullptr, 1U << 30);
    say_blocked("blocked");
    use_file();
  });
}

SCENE(bad_addresses_within_handlers) {
  signal(SIGUSR1, [](int) { use_file(); });
  raise(SIGUSR1);
  struct sigaction action = {};
  action.sa_handler = [](int) { use_file(); };
  action.sa_flags = SA_NODEFER | static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
  raise(SIGSEGV);
}

SCENE(forked_children_are_guarded_too) {
  use_file();
  in_child("child", use_file);
  const pid_t child = vfork();
  if (child == 0) {
    const int fd = open("f", O_RDWR);
    _exit(pwrite(fd, bad_page(), 1, 0) == -1 && errno == EFAULT ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("vfork", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

SCENE(handlers_that_jump_out_of_writes) {
  static char bytes[1 << 20];
  const int fd = open_file("f", O_RDWR | O_CREAT);
  signal(SIGALRM, jump_back);
  for (int round = 0; round < 100; ++round) {
    const itimerval soon = {{0, 0}, {0, 20 + round * 7}};
    if (sigsetjmp(back, 1) == 0) {
      setitimer(ITIMER_REAL, &soon, nullptr);
      for (;;) {
        if (pwrite(fd, bytes, sizeof bytes, 0) < 0 || pread(fd, bytes, sizeof bytes, 1) < 0) break;
      }
    }
  }
  say_blocked("blocked");
  say("pwrite", pwrite(fd, bytes, sizeof bytes, 0));
  say("write", write(fd, bytes, sizeof bytes));
}

SCENE(other_threads_go_on) {
  static int fd = make_file("f", "0123456789");
  static std::atomic<bool> is_over{false};
  static std::atomic<int> spoiled{0};
  pthread_t threads[2];
  const auto spoil = [](void*) -> void* {
    intptr_t others = 0;
    for (; !is_over; ++spoiled) {
      if (pwrite(fd, bad_page(), 8192, 0) != -1 || errno != EFAULT) ++others;
      if (write(fd, bad_page(), 10) != -1 || errno != EFAULT) ++others;
      if (pread(fd, bad_page(), 100, 0) != -1 || errno != EFAULT) ++others;
    }
    return reinterpret_cast<void*>(others);
  };
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, spoil, nullptr);
  int wrong = 0;
  for (int round = 0; round < 3000 || spoiled < 300; ++round) {
    int back_again = -1;
    if (pwrite(fd, &round, sizeof round, 4000) != sizeof round) ++wrong;
    if (pread(fd, &back_again, sizeof round, 4000) != sizeof round) ++wrong;
    if (back_again != round) ++wrong;
  }
  is_over = true;
  say("wrong", wrong);
  say("the last pwrite", pwrite(fd, "done", 4, 4000));
  for (const pthread_t thread : threads) {
    void* others = nullptr;
    pthread_join(thread, &others);
    say("others", reinterpret_cast<intptr_t>(others));
  }
}

// A program that sets its own handlers, dumps on a fault, and raises it again.
SCENE(python_with_its_fault_handler) {
  make_file("f", "0123456789");
  const auto python = [](const char* what, const char* text) {
    in_child(what, [=] {
      dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
      execlp("python3", "python3", "-X", "faulthandler", "-c", text, nullptr);
      _exit(127);
    });
  };
  python("reads",
         "import ctypes, os\n"
         "libc = ctypes.CDLL(None, use_errno=True)\n"
         "fd = os.open('f', os.O_RDWR)\n"
         "print(libc.read(fd, ctypes.c_void_p(8), 10), ctypes.get_errno())\n"
         "print(libc.write(fd, ctypes.c_void_p(8), 10), ctypes.get_errno())\n"
         "print(os.read(fd, 10))\n");
  python("crashes", "import ctypes, os; os.open('f', os.O_RDWR); ctypes.string_at(8)");
}
