// SPDX-License-Identifier: Apache-2.0
//
// Processes that compute for a while and then write a checkpoint, phase after phase:
//   checkpoint DIRECTORY --processes 2 --phases 16 --bytes 64M --pause-ms 200 [--fsync 1]
//   checkpoint DIRECTORY ... --check 1       reads all files back and compares, writes nothing
// Every process writes a new file per phase. Prints {"io_ns": time of the slowest process inside
// its open, write, fsync and close calls, "wall_ns"}.
#include <sys/mman.h>
#include <sys/wait.h>

#include "worker.h"

namespace {

using worker::require;

constexpr uint64_t kRequest = 1 << 20;

struct Plan {
  std::string directory;
  unsigned processes = 0;
  unsigned phases = 0;
  uint64_t bytes = 0;
  useconds_t pause_us = 0;
  bool fsync = false;
};

std::string file_name(const Plan& plan, unsigned process, unsigned phase) {
  return plan.directory + "/checkpoint." + std::to_string(process) + "." + std::to_string(phase);
}

// Different files hold different bytes: each starts elsewhere in the same content.
uint64_t first_byte(unsigned process, unsigned phase) { return (process * 131 + phase) * 8192; }

int64_t write_checkpoints(const Plan& plan, unsigned process) {
  worker::Content content(0);
  int64_t io_ns = 0;
  for (unsigned phase = 0; phase < plan.phases; ++phase) {
    usleep(plan.pause_us);
    std::string path = file_name(plan, process, phase);
    int64_t begin = worker::now_ns();
    int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    require(descriptor >= 0, "open " + path);
    for (uint64_t offset = 0; offset < plan.bytes; offset += kRequest) {
      size_t length = std::min(kRequest, plan.bytes - offset);
      ssize_t done = write(descriptor, content.at(first_byte(process, phase) + offset), length);
      require(done == static_cast<ssize_t>(length), "short write");
    }
    if (plan.fsync) require(fsync(descriptor) == 0, "fsync");
    require(close(descriptor) == 0, "close");
    io_ns += worker::now_ns() - begin;
  }
  return io_ns;
}

void check_files(const Plan& plan) {
  worker::Content content(0);
  worker::Buffer buffer(kRequest);
  for (unsigned process = 0; process < plan.processes; ++process) {
    for (unsigned phase = 0; phase < plan.phases; ++phase) {
      std::string path = file_name(plan, process, phase);
      int descriptor = open(path.c_str(), O_RDONLY);
      require(descriptor >= 0, "open " + path);
      struct stat status;
      require(fstat(descriptor, &status) == 0, "fstat");
      if (static_cast<uint64_t>(status.st_size) != plan.bytes) worker::fail("wrong size: " + path);
      for (uint64_t offset = 0; offset < plan.bytes; offset += kRequest) {
        size_t length = std::min(kRequest, plan.bytes - offset);
        ssize_t done = read(descriptor, buffer.data(), length);
        require(done == static_cast<ssize_t>(length), "short read");
        const char* expected = content.at(first_byte(process, phase) + offset);
        if (memcmp(buffer.data(), expected, length) != 0) worker::fail("wrong content: " + path);
      }
      close(descriptor);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  Plan plan{.directory = options.positional(0),
            .processes = static_cast<unsigned>(options.number("--processes", 2)),
            .phases = static_cast<unsigned>(options.number("--phases", 16)),
            .bytes = options.number("--bytes", 64 << 20),
            .pause_us = static_cast<useconds_t>(options.number("--pause-ms", 200) * 1000),
            .fsync = options.number("--fsync", 0) != 0};
  if (options.number("--check", 0) != 0) {
    check_files(plan);
    printf("{}\n");
    return 0;
  }
  auto* io_ns =
      static_cast<int64_t*>(mmap(nullptr, sizeof(int64_t) * plan.processes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  require(io_ns != MAP_FAILED, "mmap");
  int64_t begin = worker::now_ns();
  for (unsigned process = 0; process < plan.processes; ++process) {
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
      io_ns[process] = write_checkpoints(plan, process);
      exit(0);
    }
  }
  for (unsigned process = 0; process < plan.processes; ++process) {
    int status = 0;
    require(wait(&status) > 0, "wait");
    if (status != 0) worker::fail("a writing process failed");
  }
  printf("{\"io_ns\": %ld, \"wall_ns\": %ld}\n", *std::max_element(io_ns, io_ns + plan.processes),
         worker::now_ns() - begin);
  return 0;
}
