// SPDX-License-Identifier: Apache-2.0
//
// A program that starts children while other threads open and close files, or whose children end
// before the library is loaded in them:
//   cairn_children_worker spawn|system|fork|lost CHILDREN PROGRAM-THAT-CANNOT-BE-LOADED
// At the end it has no file open and every file that it made is deleted; it says "done" and waits
// for the end of its input. Exit status 0: everything did what it natively does.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> has_ended{false};
std::atomic<int> failures{0};

void require(bool condition, const char* what, int error = errno) {
  if (condition) return;
  fprintf(stderr, "children_worker: %s: %s\n", what, strerror(error));
  ++failures;
}

// With and without O_CLOEXEC and O_APPEND.
void keep_opening(unsigned kind) {
  for (unsigned long number = 0; !has_ended; ++number) {
    const std::string name = "f" + std::to_string(kind) + "-" + std::to_string(number);
    const int flags = ((kind & 1) != 0 ? O_CLOEXEC : 0) | ((kind & 2) != 0 ? O_APPEND : 0);
    const int file = open(name.c_str(), O_RDWR | O_CREAT | flags, 0644);
    require(file >= 0, "open");
    require(write(file, "abcdef", 6) == 6, "write");
    require(lseek(file, 0, SEEK_CUR) == 6, "lseek");
    char back[8] = {};
    require(pread(file, back, sizeof back, 0) == 6 && memcmp(back, "abcdef", 6) == 0, "pread");
    require(close(file) == 0, "close");
    require(unlink(name.c_str()) == 0, "unlink");
    usleep(100);
  }
}

void expect_status(pid_t child, int expected) {
  int status = -1;
  require(waitpid(child, &status, 0) == child && status == expected, "waitpid");
}

pid_t spawn(char* program) {
  char* arguments[] = {program, nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, program, nullptr, nullptr, arguments, environ);
  require(error == 0, "posix_spawn", error);
  return error == 0 ? child : -1;
}

void start_child(const std::string& how) {
  char program[] = "/bin/true";
  if (how == "system") {
    const int status = system("exit 0");
    require(status == 0, ("system, status " + std::to_string(status)).c_str());
    return;
  }
  const pid_t child = how == "fork" ? fork() : spawn(program);
  if (child == 0) _exit(0);
  if (child > 0) expect_status(child, 0);
}

pid_t start_lost(int number, char* program) {
  if (number % 3 == 0) return spawn(program);
  const pid_t child = number % 3 == 1 ? vfork() : fork();
  if (child == 0) {
    if (number % 3 == 2) raise(SIGKILL);
    char* arguments[] = {program, nullptr};
    execv(program, arguments);
    _exit(9);
  }
  return child;
}

// The last use of the file comes before the child's end, or after it.
void lose_child(int number, char* program) {
  const std::string name = "lost" + std::to_string(number);
  const int file = open(name.c_str(), O_RDWR | O_CREAT, 0644);
  require(write(file, "abc", 3) == 3, "write");
  const pid_t child = start_lost(number, program);
  const auto end = [&] {
    int status = 0;
    require(waitpid(child, &status, 0) == child && status != 0, "a child that ends early");
  };
  if (number % 2 == 0) end();
  require(unlink(name.c_str()) == 0 && close(file) == 0, "close");
  if (number % 2 != 0) end();
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string how = words[1];
  const int children = atoi(words[2]);
  std::vector<std::thread> threads;
  if (how != "lost") {
    for (unsigned kind = 0; kind < 4; ++kind) threads.emplace_back(keep_opening, kind);
  }
  for (int number = 0; number < children; ++number) {
    if (how == "lost")
      lose_child(number, words[3]);
    else
      start_child(how);
  }
  has_ended = true;
  for (std::thread& thread : threads) thread.join();
  puts("done");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return failures == 0 ? 0 : 1;
}
