// SPDX-License-Identifier: Apache-2.0
// The numbers of the library's own descriptors: the program neither sees nor closes them, and keeps
// its locks.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "scene.h"

using namespace scene;

namespace {

// How many descriptors of a file a program has.
constexpr char kCountHeld[] = "ls -l /proc/$$/fd | grep -c held";
constexpr char kCountAway[] = "ls -l /proc/$$/fd | grep -c away";
constexpr char kCountSockets[] = "test $(ls -l /proc/$$/fd | grep -c socket) -lt 10";
constexpr char kAppendToThird[] = "echo third >&3";
// The library's own are among them.
constexpr int kFirst = 4090;
constexpr int kNumbers = 20;
int away = -1;
constexpr std::size_t kSmallStackBytes = 16'384;  // PTHREAD_STACK_MIN

int take_lock(int fd, short type) {
  struct flock lock{};
  lock.l_type = type;
  return fcntl(fd, F_SETLK, &lock);
}

// Whether another process finds the file locked.
void say_lock(const char* name) {
  std::fflush(stdout);
  if (fork() == 0) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    say("asked", fcntl(open_file(name), F_GETLK, &lock));
    say("is locked", lock.l_type != F_UNLCK && lock.l_pid == getppid());
    std::fflush(stdout);
    _exit(0);
  }
  wait(nullptr);
}

// A file whose bytes are in the store alone: it was written where nothing is buffered.
void make_stored(const char* name) {
  const int fd = open_file("../elsewhere");
  static char bytes[100'000];
  memset(bytes, name[0], sizeof bytes);
  say("written", write(fd, bytes, sizeof bytes));
  close(fd);
  say("moved", rename("../elsewhere", name));
}

// Runs the line as a program that starts in a vfork child, behind change().
void say_child_of(const char* what, int fd, char* const* environment, const char* line,
                  void (*change)(int)) {
  std::fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) {
    change(fd);
    execle("/bin/sh", "sh", "-c", line, nullptr, environment);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say(what, status);
}

void place_away() {
  for (int number = kFirst; number < kFirst + kNumbers; ++number) dup2(away, number);
}

void* run_programs(void*) {
  const pid_t child = vfork();
  if (child == 0) {
    execlp("no-such-program", "x", nullptr);
    execlp("sh", "sh", "-c", "exit 3", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("status", status);
  return nullptr;
}

}  // namespace

// A write of part of a block needs the rest of it, whatever the program may do with the file.
SCENE(numbers_beside_a_file_for_writing_only) {
  make_stored("a");
  make_stored("q");
  for (const bool by_range : {false, true}) {
    const int writer = open_file("a", O_WRONLY);
    say("written", pwrite(writer, "x", 1, 10));
    if (by_range) {
      closefrom(writer + 1);
    } else {
      for (int fd = writer + 1; fd < 9000; ++fd) close(fd);
    }
    const int other = open_file("q");
    say("which", other);
    say("written", pwrite(writer, "y", 1, 70'000));
    say("other", pwrite(other, "z", 1, 0));
    int there = 0;
    for (int fd = 4000; fd < 4200; ++fd) there += dup2(other, fd) == fd ? 1 : 0;
    say("there", there);
    say("written", pwrite(writer, "w", 1, 20));
    close(writer);
    say("stored", fsync(other));
    say("cut", ftruncate(other, 99'000));
    closefrom(writer);
    say_file("a");
    say_file("q");
  }
}

// The lock would go with the first descriptor of its file that the library closes.
SCENE(numbers_beside_a_locked_file) {
  make_stored("b");
  for (const char* locked : {"b", "a"}) {
    make_stored("a");
    const int other = open_file(locked, O_WRONLY);
    say("lock", take_lock(other, F_WRLCK));
    const int writer = open_file("a", O_WRONLY);
    say("written", pwrite(writer, "zz", 2, 5000));
    say("again", pwrite(other, "yy", 2, 70'000));
    const int next = dup(writer);
    say("next", next);
    say_lock(locked);
    close(next);
    close(writer);
    close(other);
    say_file("a");
  }
}

// What the library opens to cut the file, it cannot close before the locks go.
SCENE(cuts_of_a_locked_file) {
  const rlimit limit{256, 256};
  say("limit", setrlimit(RLIMIT_NOFILE, &limit));
  for (const int flags : {O_RDWR, O_WRONLY, O_RDONLY}) {
    const int fd = make_file("f", "0123456789");
    close(fd);
    const int locking = open_file("f", flags);
    say("lock", take_lock(locking, flags == O_RDONLY ? F_RDLCK : F_WRLCK));
    int cut = 0;
    for (int i = 0; i < 600; ++i) cut += truncate("f", i % 10) == 0 ? 1 : 0;
    say("cut", cut);
    say("mode", chmod("f", 0444));
    say("cut", truncate("f", 5));
    say("mode", chmod("f", 0644));
    say_lock("f");
    say_file("f");
    close(locking);
    closefrom(3);
  }
}

SCENE(an_open_that_cuts_a_locked_file) {
  const int fd = make_file("f", "0123456789");
  say("lock", take_lock(fd, F_WRLCK));
  say("cutting", open_file("f", O_RDONLY | O_TRUNC));
  const int zeros = open("/dev/zero", O_RDONLY);
  for (int to = zeros + 1; to < zeros + 5; ++to) say("to", dup2(zeros, to));
  say("closed", close(fd));
  char bytes[4];
  for (int to = zeros + 1; to < zeros + 5; ++to) say("read", read(to, bytes, sizeof bytes));
  say_file("f");
}

// What the library opened for the child goes with the locks.
SCENE(a_spawn_that_opens_a_locked_file) {
  const int fd = make_file("f", "0123456789");
  say("lock", take_lock(fd, F_WRLCK));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 60, "f", O_RDWR, 0);
  char name[] = "true";
  char* const arguments[] = {name, nullptr};
  char* const environment[] = {nullptr};
  pid_t child = -1;
  say("spawned", posix_spawn(&child, "/bin/true", &actions, nullptr, arguments, environment));
  posix_spawn_file_actions_destroy(&actions);
  wait(nullptr);
  say_lock("f");
  say("closed", close(fd));
  int ends[2];
  say("pipe", pipe(ends));
  say("end", ends[0]);
  say("written", write(ends[1], "abc", 3));
  char bytes[3] = {};
  say("read", read(ends[0], bytes, sizeof bytes));
  say_bytes("bytes", bytes, sizeof bytes);
}

// What the child gives up is nothing that its program gets.
SCENE(a_program_that_gets_no_file) {
  const int fd = make_file("held", "0123456789");
  char* const alone[] = {nullptr};
  for (char* const* environment : {static_cast<char* const*>(environ), alone}) {
    say_child_of("closed", fd, environment, kCountHeld, [](int file) { close(file); });
    say_child_of("closed with all", fd, environment, kCountHeld,
                 [](int) { close_range(3, ~0U, 0); });
    say_child_of("not passed on", fd, environment, kCountHeld,
                 [](int file) { fcntl(file, F_SETFD, FD_CLOEXEC); });
    say_child_of("replaced", fd, environment, kCountHeld,
                 [](int file) { dup2(STDOUT_FILENO, file); });
  }
  say("written", write(fd, "abc", 3));
  say_file("held");
}

// What the child has put at numbers that are the library's in its parent goes to its program, if
// the child leaves it there.
SCENE(a_program_that_gets_such_numbers) {
  const int fd = make_file("file", "0123456789");
  make_file("other", "0123456789");
  away = open_file("../away");
  const auto say_number = [fd](const char* what, void (*change)(int)) {
    say_child_of(what, fd, environ, kCountAway, change);
  };
  say_number("placed", [](int) { place_away(); });
  say_number("file closed", [](int file) {
    place_away();
    close(file);
  });
  say_number("closed", [](int) {
    place_away();
    for (int number = kFirst; number < kFirst + kNumbers; ++number) close(number);
  });
  say_number("all closed", [](int) {
    place_away();
    close_range(3, ~0U, 0);
  });
  say_number("not passed on", [](int) {
    for (int number = kFirst; number < kFirst + kNumbers; ++number) dup3(away, number, O_CLOEXEC);
  });
}

// What the child opens is nothing that its parent gets, although the two work in one memory.
SCENE(a_program_that_gets_what_its_child_opens) {
  const int fd = make_file("file", "0123456789");
  char* const alone[] = {nullptr};
  for (char* const* environment : {static_cast<char* const*>(environ), alone}) {
    say("written", write(fd, "abc", 3));
    say_child_of("made", fd, environment, "echo program; echo more >&2", [](int) {
      const int log = open_file("log", O_WRONLY | O_CREAT | O_TRUNC);
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
    });
    int ends[2];
    say("pipe", pipe(ends));
    say("end", ends[0]);
    say("written", write(ends[1], "xyz", 3));
    char bytes[3] = {};
    say("read", read(ends[0], bytes, sizeof bytes));
    close(ends[0]);
    close(ends[1]);
    say_file("log");
    say_child_of("in place", fd, environment, kAppendToThird, [](int file) {
      close(file);
      open_file("log", O_WRONLY | O_APPEND);
    });
    say("written", write(fd, "def", 3));
    say_child_of("read", fd, environment, "cat > copy", [](int) {
      close(STDIN_FILENO);
      open_file("file", O_RDONLY);
    });
    say("cut", ftruncate(fd, 15));
    say_file("copy");
    say_file("log");
    say_file("file");
  }
}

// Also where the parent has the same file at the same number, and however many the child opens.
SCENE(a_program_that_gets_a_file_of_its_parent_anew) {
  const rlimit limit{300, 4096};
  say("limit", setrlimit(RLIMIT_NOFILE, &limit));
  const int fd = make_file("file", "0123456789");
  char* const alone[] = {nullptr};
  for (char* const* environment : {static_cast<char* const*>(environ), alone}) {
    say("placed", lseek(fd, 5, SEEK_SET));
    say_child_of("appended", fd, environment, kAppendToThird, [](int file) {
      close_range(static_cast<unsigned>(file), ~0U, 0);
      open_file("file", O_WRONLY | O_APPEND);
    });
    say_child_of("read", fd, environment, "cat <&3 >copy", [](int file) {
      closefrom(file);
      open_file("file", O_RDONLY);
    });
    say_child_of("many", fd, environment, kCountSockets, [](int) {
      for (int round = 0; round < 400; ++round) close(open_file("file", O_RDWR));
    });
    say("offset", lseek(fd, 0, SEEK_CUR));
    say("written", write(fd, "abc", 3));
    say_file("copy");
    say_file("file");
  }
}

// Such a child leaves no lock to its parent.
SCENE(children_that_are_killed_while_they_open) {
  const int fd = make_file("file", "0123456789");
  int ends[2];
  say("pipe", pipe(ends));
  const pid_t killer = fork();
  pid_t victim = 0;
  while (killer == 0 && read(ends[0], &victim, sizeof victim) == sizeof victim && victim != 0) {
    usleep(3'000);
    kill(victim, SIGKILL);
  }
  if (killer == 0) _exit(0);
  int killed = 0;
  for (int round = 0; round < 50; ++round) {
    if (vfork() == 0) {
      const pid_t self = getpid();
      if (write(ends[1], &self, sizeof self) != sizeof self) _exit(1);
      for (;;) close(open_file("file", O_RDWR));
    }
    int status = 0;
    wait(&status);
    killed += WIFSIGNALED(status) && write(fd, "abc", 3) == 3 ? 1 : 0;
  }
  say("killed", killed);
  say_child_of("opened", fd, environ, "exit 3", [](int) { open_file("file", O_RDWR); });
  say("over", write(ends[1], &victim, sizeof victim));
  wait(nullptr);
  say_file("file");
}

// A thread may have no more stack than this.
SCENE(programs_of_a_small_thread) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  say("stack", pthread_attr_setstacksize(&attributes, kSmallStackBytes));
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run_programs, nullptr);
  pthread_join(thread, nullptr);
  say("made", error);
}

// The target of such a call stays what it is.
SCENE(a_duplicate_that_fails) {
  const int from = make_file("from", "0123456789");
  const int other = make_file("to", "0123456789");
  say("placed", dup2(other, 20));
  say("closed", close(other));
  const rlimit limit{10, 4096};
  say("limit", setrlimit(RLIMIT_NOFILE, &limit));
  say("dup2", dup2(from, 20));
  say("written", write(20, "more", 4));
  say("dup3", dup3(from, 20, O_CLOEXEC));
  say("written", write(20, "again", 5));
  say("from nothing", dup2(999, 20));
  say("closed", close(20));
  say_file("to");
}

// The second one needs the rest of the block, and no descriptor of a locked file is to be closed
// for that. The first one's lock goes with the first one all the same.
SCENE(a_file_for_writing_only_beside_a_locked_one) {
  make_stored("f");
  const int locked = open_file("f");
  say("written", pwrite(locked, "first", 5, 1000));
  say("own lock", flock(locked, LOCK_EX | LOCK_NB));
  say("lock", take_lock(locked, F_RDLCK));
  const int writer = open_file("f", O_WRONLY);
  say("written", pwrite(writer, "part", 4, 70'001));
  say("closed", close(locked));
  say("free", flock(writer, LOCK_EX | LOCK_NB));
  say_file("f");
}

// An exec keeps the locks of the process.
SCENE(a_lock_that_a_program_inherits) {
  int ends[2];
  say("pipe", pipe(ends));
  std::fflush(stdout);
  const pid_t locker = fork();
  if (locker == 0) {
    say("lock", take_lock(open_file("f", O_WRONLY | O_CREAT), F_WRLCK));
    std::fflush(stdout);
    dup2(ends[1], 1);
    execl("/bin/sh", "sh", "-c", "echo; exec sleep 10", nullptr);
    _exit(1);
  }
  char line = 0;
  say("runs", read(ends[0], &line, 1));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  say("asked", fcntl(open_file("f"), F_GETLK, &lock));
  say("is locked", lock.l_type != F_UNLCK && lock.l_pid == locker);
  kill(locker, SIGKILL);
  wait(nullptr);
}

namespace {

constexpr int kThreads = 4;
int files_of_threads[kThreads];
std::atomic<int> reader{-1};
constexpr int kLargeBlocks = 3000;
constexpr off_t kBlockBytes = 64 * 1024;
std::atomic<bool> is_over{false};

int count_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

void* duplicate_and_close(void* at) {
  const int fd = *static_cast<int*>(at);
  auto seed = static_cast<unsigned>(fd);
  for (int i = 0; i < 5000; ++i) {
    if (rand_r(&seed) % 3 != 0) {
      (void)dup2(fd, 60);
    } else {
      close(60);
    }
  }
  return nullptr;
}

// The larger part of it is not in memory.
void* read_large(void* wrong) {
  char bytes[100];
  unsigned seed = 1;
  while (!is_over) {
    const auto at = static_cast<off_t>(rand_r(&seed) % (kLargeBlocks - 1)) * kBlockBytes;
    if (pread(reader, bytes, sizeof bytes, at) != sizeof bytes || bytes[0] != 'l')
      *static_cast<std::atomic<bool>*>(wrong) = true;
  }
  return nullptr;
}

}  // namespace

// Each of them takes the number from another one, whose file has a descriptor less.
SCENE(threads_that_duplicate_onto_one_number) {
  close(make_file("warm", "x"));
  const int before = count_descriptors();
  pthread_t threads[kThreads];
  const char* const names[kThreads] = {"a", "b", "c", "d"};
  for (int i = 0; i < kThreads; ++i) {
    files_of_threads[i] = open_file(names[i]);
    pthread_create(&threads[i], nullptr, duplicate_and_close, &files_of_threads[i]);
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  close(60);
  for (const int fd : files_of_threads) say("written", write(fd, "z", 1));
  for (const int fd : files_of_threads) say("closed", close(fd));
  say("left", count_descriptors() - before);
}

// A number that the library uses may be refused; what another thread reads is right either way.
SCENE(numbers_that_other_threads_read_from) {
  const rlimit limit{1024, 1024};
  say("limit", setrlimit(RLIMIT_NOFILE, &limit));
  const int maker = open_file("../elsewhere");
  static char block[kBlockBytes];
  memset(block, 'l', sizeof block);
  for (int i = 0; i < kLargeBlocks; ++i) (void)!write(maker, block, sizeof block);
  close(maker);
  say("moved", rename("../elsewhere", "large"));
  const int zeros = open("/dev/zero", O_RDONLY);
  reader = open_file("large", O_RDONLY);
  std::atomic<bool> is_wrong{false};
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, read_large, &is_wrong);
  usleep(20'000);
  // Those of before stay open for calls that are under way.
  for (int round = 0; round < 100; ++round) {
    for (int fd = 500; fd < 900; ++fd) {
      if (dup2(zeros, fd) == fd) close(fd);
    }
    reader = open_file("large", O_RDONLY);
  }
  is_over = true;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  say("wrong", is_wrong);
  say("gone", unlink("large"));
}
