// SPDX-License-Identifier: Apache-2.0
// Several processes of one worker that do the same at the same time.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>

#include "worker.h"

namespace worker {

// Zeroed memory that processes forked later share with this one; it lasts as long as they do.
template <typename Element>
Element* map_shared(size_t count) {
  void* mapped = mmap(nullptr, count * sizeof(Element), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  require(mapped != MAP_FAILED, "mmap");
  return static_cast<Element*>(mapped);
}

// In shared memory: where processes wait for one another.
struct MeetingPoint {
  std::atomic<unsigned> waiting;
  std::atomic<unsigned> met;

  void meet(unsigned processes) {
    const unsigned before = met.load();
    if (waiting.fetch_add(1) + 1 == processes) {
      waiting = 0;
      met = before + 1;
    }
    while (met.load() == before) sched_yield();
  }
};

// Runs work(0), work(1), ... in as many processes and waits for them. A failure of one ends the
// worker, and the worker's end those that wait for the one that failed.
template <typename Work>
void run_processes(unsigned processes, Work&& work) {
  for (unsigned process = 0; process < processes; ++process) {
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child != 0) continue;
    require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
    work(process);
    _exit(0);
  }
  for (unsigned process = 0; process < processes; ++process) {
    int status = 0;
    require(wait(&status) > 0, "wait");
    if (status != 0) fail("a process failed");
  }
}

}  // namespace worker
