// SPDX-License-Identifier: Apache-2.0
// Maps files from several threads and processes, and compares after each step what the mapping has
// with what read() and write() have. Ends with 1 and a line when they differ.
//
//   map_worker threads|fixed|remap|fork
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 2 * kPage;
constexpr int kProtection = PROT_READ | PROT_WRITE;

std::atomic<bool> is_wrong{false};

void complain(const char* what, unsigned wanted, unsigned got) {
  if (!is_wrong.exchange(true)) std::printf("%s: %u instead of %u\n", what, got, wanted);
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(2);
}

int make_file(const std::string& name) {
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  must(fd >= 0 && ftruncate(fd, kBytes) == 0, "making a file");
  return fd;
}

char* map(void* where, int fd, int flags) {
  void* mapped = mmap(where, kBytes, kProtection, MAP_SHARED | flags, fd, 0);
  must(mapped != MAP_FAILED, "mmap");
  return static_cast<char*>(mapped);
}

// Each way shows what came the other way.
void compare(char* mapping, int fd, unsigned* value) {
  auto* there = reinterpret_cast<std::atomic<unsigned>*>(mapping);
  for (int turn = 0; turn < 3; ++turn) {
    unsigned got = 0;
    there->store(++*value);
    must(pread(fd, &got, sizeof got, 0) == sizeof got, "pread");
    if (got != *value) complain("read what was written through the mapping", *value, got);
    ++*value;
    must(pwrite(fd, value, sizeof *value, 0) == sizeof *value, "pwrite");
    if (there->load() != *value) complain("mapping of what was written", *value, there->load());
  }
}

void map_and_unmap(int fd, unsigned* value) {
  char* mapping = map(nullptr, fd, 0);
  compare(mapping, fd, value);
  must(munmap(mapping, kBytes) == 0, "munmap");
}

// Over memory of one's own, which is put back over it.
void map_over(int fd, unsigned* value) {
  void* own = mmap(nullptr, kBytes, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(own != MAP_FAILED, "mmap");
  compare(map(own, fd, MAP_FIXED), fd, value);
  must(mmap(own, kBytes, kProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == own,
       "mmap over a mapping");
  must(munmap(own, kBytes) == 0, "munmap");
}

void map_and_move(int fd, unsigned* value) {
  char* mapping = map(nullptr, fd, 0);
  void* moved = mremap(mapping, kBytes, 16 * kPage, MREMAP_MAYMOVE);
  must(moved != MAP_FAILED, "mremap");
  compare(static_cast<char*>(moved), fd, value);
  // The part behind the file's end first: what is left is a mapping of the file.
  must(munmap(static_cast<char*>(moved) + kBytes, 14 * kPage) == 0, "munmap of a part");
  compare(static_cast<char*>(moved), fd, value);
  must(munmap(moved, kBytes) == 0, "munmap");
}

// Three threads with a file each, so that one gets the addresses that another has just given back.
void in_threads(void (*step)(int, unsigned*)) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([=] {
      const int fd = make_file("mapped" + std::to_string(number));
      unsigned value = 0;
      while (!is_wrong && std::chrono::steady_clock::now() < end) step(fd, &value);
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The child's mapping counts when the parent's is gone, though no descriptor is open at the fork.
void in_child() {
  for (unsigned round = 1; round <= 20 && !is_wrong; ++round) {
    const int fd = make_file("forked");
    char* mapping = map(nullptr, fd, 0);
    close(fd);
    int told[2];
    must(pipe(told) == 0, "pipe");
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
      char byte = 0;
      must(read(told[0], &byte, 1) == 1, "read of the pipe");
      unsigned seen = 0;
      std::memcpy(&seen, mapping, sizeof seen);
      _exit(seen == round ? 0 : 1);
    }
    must(munmap(mapping, kBytes) == 0, "munmap");
    const int again = open("forked", O_RDWR);
    must(pwrite(again, &round, sizeof round, 0) == sizeof round, "pwrite");
    must(write(told[1], "x", 1) == 1, "write to the pipe");
    int status = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) complain("the child's mapping did not see the parent's write", 0, 1);
    close(again);
    close(told[0]);
    close(told[1]);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string scene = count > 1 ? arguments[1] : "";
  if (scene == "threads") in_threads(map_and_unmap);
  if (scene == "fixed") in_threads(map_over);
  if (scene == "remap") in_threads(map_and_move);
  if (scene == "fork") in_child();
  return is_wrong ? 1 : 0;
}
