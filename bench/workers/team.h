// SPDX-License-Identifier: Apache-2.0
//
// Several processes that go through the phases of a parallel program together, as MPI ranks do, and
// the time that each of them spends in its I/O calls:
//   worker::Team team(processes, phases);
//   team.run([&](unsigned process) {
//     worker::TimedFile file(path, O_WRONLY | O_CREAT, &team.times(process, phase).write_ns);
//     team.wait_for_all();
//   });
//   team.print();
//
// What counts as I/O time of a phase is that of its slowest process, because the others wait for it
// at the phase's end; waiting itself is not I/O. Times are nanoseconds of the monotonic clock.
//
// Thread safety: none within a process; between processes, each writes its own times only and they
// are read after all have ended. Ownership: the team owns the shared memory and the processes that
// it forks.
// Errors: a process that fails ends the others and the worker; none is left waiting for it.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "worker.h"

namespace worker {

struct PhaseTimes {
  int64_t write_ns;
  int64_t read_ns;
};

class Team {
 public:
  Team(unsigned processes, unsigned phases) : processes_(processes), phases_(phases) {
    size_t bytes = sizeof(Shared) + sizeof(PhaseTimes) * processes * phases;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "mmap");
    shared_ = static_cast<Shared*>(memory);
    times_ = reinterpret_cast<PhaseTimes*>(shared_ + 1);
    pthread_barrierattr_t attributes;
    require(pthread_barrierattr_init(&attributes) == 0, "pthread_barrierattr_init");
    require(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0,
            "pthread_barrierattr_setpshared");
    require(pthread_barrier_init(&shared_->barrier, &attributes, processes) == 0,
            "pthread_barrier_init");
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned processes() const { return processes_; }
  PhaseTimes& times(unsigned process, unsigned phase) const {
    return times_[process * phases_ + phase];
  }

  // Runs body(process) in one forked process each and returns when all have ended.
  template <typename Body>
  void run(Body body) {
    int64_t begin = now_ns();
    std::vector<pid_t> children;
    for (unsigned process = 0; process < processes_; ++process) {
      pid_t child = fork();
      require(child >= 0, "fork");
      if (child == 0) {
        body(process);
        exit(0);
      }
      children.push_back(child);
    }
    wait_for_end(children);
    wall_ns_ = now_ns() - begin;
  }

  // Returns in all processes when the last one has called it.
  void wait_for_all() const { pthread_barrier_wait(&shared_->barrier); }

  // Computing, which here is sleeping, as in the papers' own benchmark: more processes than
  // processors would else measure the scheduler.
  static void compute(uint64_t milliseconds) {
    timespec left{static_cast<time_t>(milliseconds / 1000),
                  static_cast<long>(milliseconds % 1000) * 1'000'000};
    while (nanosleep(&left, &left) != 0) require(errno == EINTR, "nanosleep");
  }

  // Empties the kernel's caches between two phases; all processes must call it. Pages that are not
  // yet stored cannot be dropped: with sync_first the whole system is synchronised before.
  void drop_caches(unsigned process, bool sync_first) const {
    wait_for_all();
    if (process == 0) {
      if (sync_first) sync();
      int descriptor = open("/proc/sys/vm/drop_caches", O_WRONLY);
      require(descriptor >= 0, "open /proc/sys/vm/drop_caches");
      require(write(descriptor, "3", 1) == 1, "write /proc/sys/vm/drop_caches");
      close(descriptor);
    }
    wait_for_all();
  }

  // {"io_ns", "wall_ns", "write_ns", "read_ns"}: sums over the phases of what their slowest process
  // needed.
  void print() const {
    PhaseTimes sum{0, 0};
    int64_t io_ns = 0;
    for (unsigned phase = 0; phase < phases_; ++phase) {
      PhaseTimes slowest{0, 0};
      int64_t slowest_io_ns = 0;
      for (unsigned process = 0; process < processes_; ++process) {
        const PhaseTimes& own = times(process, phase);
        slowest.write_ns = std::max(slowest.write_ns, own.write_ns);
        slowest.read_ns = std::max(slowest.read_ns, own.read_ns);
        slowest_io_ns = std::max(slowest_io_ns, own.write_ns + own.read_ns);
      }
      sum.write_ns += slowest.write_ns;
      sum.read_ns += slowest.read_ns;
      io_ns += slowest_io_ns;
    }
    printf("{\"io_ns\": %ld, \"wall_ns\": %ld, \"write_ns\": %ld, \"read_ns\": %ld}\n", io_ns,
           wall_ns_, sum.write_ns, sum.read_ns);
  }

 private:
  struct Shared {
    pthread_barrier_t barrier;
  };

  static void wait_for_end(std::vector<pid_t>& children) {
    while (!children.empty()) {
      int status = 0;
      pid_t ended = wait(&status);
      require(ended > 0, "wait");
      std::erase(children, ended);
      if (status == 0) continue;
      // The others would wait at the barrier for ever.
      for (pid_t child : children) kill(child, SIGKILL);
      fail("a process of the team failed");
    }
  }

  unsigned processes_;
  unsigned phases_;
  Shared* shared_;
  PhaseTimes* times_;
  int64_t wall_ns_ = 0;
};

}  // namespace worker
