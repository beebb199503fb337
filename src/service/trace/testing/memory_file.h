// SPDX-License-Identifier: Apache-2.0
// Files and seeds of the tests: a file that is only in memory but has a path, and the seed of a
// random test, printed so that CAIRN_SEED repeats it.
//
// Thread safety: none. Ownership: the file is gone with its object.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "service/trace/trace_event.h"

namespace cairn {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content = {}) : fd_(::memfd_create("trace", MFD_CLOEXEC)) {
    set_content(content);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void set_content(std::string_view content) {
    EXPECT_EQ(::ftruncate(fd_, 0), 0);
    EXPECT_EQ(::pwrite(fd_, content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
  }
  std::string content() const {
    struct stat status{};
    EXPECT_EQ(::fstat(fd_, &status), 0);
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    EXPECT_EQ(::pread(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }

 private:
  int fd_;
};

inline std::uint64_t printed_seed() {
  const char* given = std::getenv("CAIRN_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CAIRN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

inline std::vector<TraceEvent> all_events(TraceSource* source) {
  std::vector<TraceEvent> events;
  for (TraceEvent event; source->next(&event);) events.push_back(event);
  return events;
}

// The events of programs that mostly read on where they were, and sometimes anywhere.
inline std::vector<TraceEvent> random_events(std::mt19937_64* random, std::size_t count,
                                             std::uint32_t files, std::uint32_t processes) {
  std::vector<TraceEvent> events(count);
  TraceEvent last;
  for (TraceEvent& event : events) {
    if ((*random)() % 4 == 0) {
      last.file = static_cast<std::uint32_t>((*random)() % files);
      last.process = static_cast<std::uint32_t>((*random)() % processes);
      last.stream = static_cast<std::uint32_t>((*random)() >> ((*random)() % 32 + 32));
    }
    if ((*random)() % 8 == 0) {
      last.offset = (*random)() >> ((*random)() % 64);
      last.length = static_cast<std::uint32_t>((*random)() >> ((*random)() % 32 + 32));
    }
    last.offset += last.length;
    // Mostly forward, for threads write down what they have seen a little later.
    last.time_ns += (*random)() % 1000 - 10;
    last.kind = static_cast<TraceKind>((*random)() % kTraceKinds);
    event = last;
  }
  return events;
}

}  // namespace cairn
