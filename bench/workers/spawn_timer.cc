// SPDX-License-Identifier: Apache-2.0
//
// How long a command takes from its start to its end, many times over:
//   spawn_timer TIMES COMMAND ARGUMENT...
// Prints {"ns": median}. The command's standard output is discarded.
#include <spawn.h>
#include <sys/wait.h>

#include "worker.h"

int main(int count, char** words) {
  if (count < 3) worker::fail("usage: spawn_timer TIMES COMMAND ARGUMENT...");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  std::vector<double> ns;
  for (int i = atoi(words[1]); i > 0; --i) {
    int64_t begin = worker::now_ns();
    pid_t child = 0;
    int error = posix_spawn(&child, words[2], &actions, nullptr, words + 2, environ);
    if (error != 0) worker::fail(words[2], error);
    int status = 0;
    worker::require(waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) worker::fail(std::string(words[2]) + " did not succeed");
    ns.push_back(static_cast<double>(worker::now_ns() - begin));
  }
  printf("{\"ns\": %.0f}\n", worker::median(ns));
  return 0;
}
