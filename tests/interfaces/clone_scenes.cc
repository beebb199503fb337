// SPDX-License-Identifier: Apache-2.0
// Processes that share with each other what others do not: descriptors without memory, memory
// without descriptors, both without being threads, or nothing.
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "scene.h"

using namespace scene;

namespace {

constexpr std::size_t kStackBytes = 1 << 18;

int file = -1;
int ends[2] = {-1, -1};

// Runs `work` in a process that is made with these flags, and waits for it.
void in_clone(int flags, int (*work)(void*)) {
  auto* stack = static_cast<char*>(malloc(kStackBytes));
  const int child = clone(work, stack + kStackBytes, flags | SIGCHLD, nullptr);
  say("cloned", child > 0);
  int status = 0;
  waitpid(child, &status, 0);
  say("status", status);
  free(stack);
}

void begin() {
  file = make_file("f", "0123456789");
  say("pwrite", pwrite(file, "ab", 2, 0));
  say("pipe", pipe(ends));
}

// What the parent's calls meet at the numbers that the child has changed.
void look_at_numbers() {
  char back[16] = {};
  say("read the number", read(file, back, 4));
  say_bytes("back", back, 4);
  say("write to the number", write(file, "bytes", 5));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  memset(back, 0, sizeof back);
  say("read the pipe", read(ends[0], back, sizeof back));
  say_bytes("back", back, 8);
  say("lseek", lseek(file, 0, SEEK_CUR));
  say("close", close(file));
  say("close again", close(file));
  say("open", open("other", O_RDWR | O_CREAT, 0644) == file);
  say("write", write(file, "other", 5));
  say_file("f");
  say_file("other");
  (void)!system("cat f other");
}

int change_numbers(void*) {
  pwrite(file, "child", 5, 2);
  dup2(ends[1], file);
  _exit(0);
}

int close_number(void*) {
  pwrite(file, "child", 5, 2);
  close(file);
  _exit(0);
}

int exchange_file(void*) {
  close(file);
  const int other = open("exchanged", O_RDWR | O_CREAT, 0644);
  const bool is_right =
      other == file && write(other, "in the child", 12) == 12 && lseek(other, 3, SEEK_SET) == 3;
  _exit(is_right ? 0 : 1);
}

int use_file(void*) {
  char back[3];
  const bool is_right =
      read(file, back, 3) == 3 && pwrite(file, "CHILD", 5, 5) == 5 && lseek(file, 1, SEEK_CUR) == 4;
  _exit(is_right ? 0 : 1);
}

// Makes a child without libc's help, which goes on where its parent is.
void in_raw_child(const char* name, const std::function<long()>& make, int (*work)(void*)) {
  const long child = make();
  if (child == 0) work(nullptr);
  say(name, child > 0);
  int status = 0;
  waitpid(static_cast<pid_t>(child), &status, 0);
  say("status", status);
}

long raw_clone(unsigned long flags) { return syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0); }

long raw_clone3(unsigned long flags) {
  clone_args arguments{};
  arguments.flags = flags;
  arguments.exit_signal = SIGCHLD;
  return syscall(SYS_clone3, &arguments, sizeof arguments);
}

}  // namespace

SCENE(both_changed) {
  begin();
  in_clone(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND, change_numbers);
  look_at_numbers();
}

SCENE(both_closed) {
  begin();
  in_clone(CLONE_VM | CLONE_FILES, close_number);
  look_at_numbers();
}

SCENE(both_exchanged_while_waiting) {
  begin();
  in_clone(CLONE_VM | CLONE_FILES | CLONE_VFORK, exchange_file);
  look_at_numbers();
  say_file("exchanged");
}

SCENE(descriptors_changed) {
  begin();
  in_clone(CLONE_FILES, change_numbers);
  look_at_numbers();
}

SCENE(descriptors_closed) {
  begin();
  in_clone(CLONE_FILES, close_number);
  look_at_numbers();
}

SCENE(descriptors_exchanged) {
  begin();
  in_clone(CLONE_FILES, exchange_file);
  look_at_numbers();
  say_file("exchanged");
}

SCENE(descriptors_used) {
  begin();
  in_clone(CLONE_FILES, use_file);
  look_at_numbers();
}

SCENE(memory_changed) {
  begin();
  in_clone(CLONE_VM, change_numbers);
  look_at_numbers();
}

SCENE(memory_exchanged) {
  begin();
  in_clone(CLONE_VM, exchange_file);
  look_at_numbers();
  say_file("exchanged");
}

SCENE(nothing_used) {
  begin();
  in_clone(0, use_file);
  look_at_numbers();
}

SCENE(nothing_changed) {
  begin();
  in_clone(0, change_numbers);
  look_at_numbers();
}

SCENE(vfork_closed) {
  begin();
  in_clone(CLONE_VM | CLONE_VFORK, close_number);
  look_at_numbers();
}

SCENE(raw_children) {
  begin();
  in_raw_child("fork", [] { return syscall(SYS_fork); }, use_file);
  in_raw_child("clone", [] { return raw_clone(0); }, use_file);
  in_raw_child("clone3", [] { return raw_clone3(0); }, close_number);
  look_at_numbers();
}

SCENE(raw_clone_of_descriptors) {
  begin();
  in_raw_child("clone", [] { return raw_clone(CLONE_FILES); }, change_numbers);
  look_at_numbers();
}

SCENE(raw_clone3_of_descriptors) {
  begin();
  in_raw_child("clone3", [] { return raw_clone3(CLONE_FILES); }, exchange_file);
  look_at_numbers();
  say("no arguments", syscall(SYS_clone3, nullptr, 64));
  say("bad arguments", syscall(SYS_clone3, 8, 64));
}

SCENE(appending_with_another) {
  file = make_file("f", "0123", O_RDWR | O_APPEND);
  say("pipe", pipe(ends));
  in_clone(CLONE_FILES, [](void*) -> int {
    const bool is_right = write(file, "child", 5) == 5 && dup(file) >= 0;
    _exit(is_right ? 0 : 1);
  });
  say("write", write(file, "parent", 6));
  say("flags", fcntl(file, F_GETFL) & (O_ACCMODE | O_APPEND));
  say_file("f");
  say("close_range", close_range(3, ~0U, 0));
  say_file("f");
}

SCENE(a_thread_of_its_own) {
  begin();
  std::thread([] {
    say("unshare", unshare(CLONE_FILES));
    say("dup2", dup2(ends[1], file) == file);
    say("write", write(file, "to the pipe", 11));
  }).join();
  look_at_numbers();
}

SCENE(a_thread_closes_its_range) {
  begin();
  std::thread([] {
    say("close_range", close_range(3, ~0U, CLOSE_RANGE_UNSHARE));
    char back[4];
    say("read", read(file, back, 4));
  }).join();
  look_at_numbers();
}

SCENE(alone_with_its_table) {
  begin();
  say("unshare", unshare(CLONE_FILES));
  look_at_numbers();
}
