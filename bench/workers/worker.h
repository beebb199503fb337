// SPDX-License-Identifier: Apache-2.0
//
// What all workers share: a clock, checkable file content, command-line options, failing loudly.
//
// Thread safety: everything is either immutable after construction or used by one thread.
// Ownership: plain values; descriptors belong to the worker that opened them.
//
// Workers are ordinary programs, so that the same binary measures the kernel and Cairn.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace worker {

// Ends the worker: a time is only reported for work that was done and whose result was right.
[[noreturn]] inline void fail(const std::string& what, int error = 0) {
  fprintf(stderr, "%s%s%s\n", what.c_str(), error ? ": " : "", error ? strerror(error) : "");
  exit(1);
}

inline void require(bool condition, const std::string& what) {
  if (!condition) fail(what, errno);
}

inline int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Small and fast; the same sequence can be replayed from the same seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull | 1) {}
  uint64_t below(uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(state_) * limit) >> 64);
  }

 private:
  uint64_t state_;
};

// A page-aligned buffer, as programs that care about I/O use. The alignment matters: here the
// kernel copies to a buffer 16 bytes past a page boundary, which is where malloc puts a large one,
// at a tenth of the speed.
class Buffer {
 public:
  explicit Buffer(size_t size)
      : data_(static_cast<char*>(aligned_alloc(4096, (size + 4095) & ~size_t{4095}))) {
    require(data_ != nullptr, "aligned_alloc");
    memset(data_, 0, size);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { free(data_); }
  char* data() const { return data_; }

 private:
  char* data_;
};

// File content that every worker can produce and check without cost in the timed part: the bytes at
// an offset are found at a pointer, and they repeat with a period that is no multiple of any block
// size, so that swapped or shifted blocks are noticed. Generations differ in every byte.
class Content {
 public:
  static constexpr size_t kLargestRequest = 4 << 20;
  static constexpr size_t kPeriod = (1 << 20) + 3 * 4096;

  explicit Content(unsigned generation) : buffer_(kPeriod + kLargestRequest) {
    Random random(77);
    char* bytes = buffer_.data();
    for (size_t i = 0; i < kPeriod; ++i) {
      bytes[i] = static_cast<char>(random.below(256) ^ (generation * 0x5B));
    }
    for (size_t i = 0; i < kLargestRequest; ++i) bytes[kPeriod + i] = bytes[i];
  }
  // Requires: at most kLargestRequest bytes are used.
  const char* at(uint64_t offset) const { return buffer_.data() + offset % kPeriod; }

 private:
  Buffer buffer_;
};

// Writes all of it or ends the worker.
inline void write_fully(int descriptor, const char* data, size_t size, uint64_t offset) {
  while (size > 0) {
    ssize_t done = pwrite(descriptor, data, size, static_cast<off_t>(offset));
    require(done > 0, "pwrite");
    data += done;
    size -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
}

// "--name value" pairs behind the positional arguments; sizes take K, M and G.
class Options {
 public:
  Options(int count, char** words) {
    for (int i = 1; i < count; ++i) words_.emplace_back(words[i]);
  }
  std::string positional(size_t index) const {
    if (index >= words_.size()) fail("missing argument " + std::to_string(index + 1));
    return words_[index];
  }
  std::string text(std::string_view name, const std::string& otherwise) const {
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      if (words_[i] == name) return words_[i + 1];
    }
    return otherwise;
  }
  uint64_t number(std::string_view name, uint64_t otherwise) const {
    std::string value = text(name, "");
    return value.empty() ? otherwise : parse(value);
  }
  std::vector<uint64_t> numbers(std::string_view name, const std::string& otherwise) const {
    std::vector<uint64_t> result;
    std::string rest = text(name, otherwise);
    while (!rest.empty()) {
      size_t comma = std::min(rest.find(','), rest.size());
      result.push_back(parse(rest.substr(0, comma)));
      rest.erase(0, comma + 1);
    }
    return result;
  }

 private:
  static uint64_t parse(const std::string& word) {
    char* end = nullptr;
    uint64_t value = strtoull(word.c_str(), &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == word.c_str() || (shift == 0 && *end != '\0')) fail("not a number: " + word);
    return value << shift;
  }

  std::vector<std::string> words_;
};

}  // namespace worker
