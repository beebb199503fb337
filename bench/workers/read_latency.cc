// SPDX-License-Identifier: Apache-2.0
//
// How long single reads of a resident file take, under whatever goes on beside them:
//   read_latency FILE [--request 4096] [--seed 1]
// Reads the file once and prints "ready". Each line "MILLISECONDS" of its input is then answered by
// a line {"p50_ns": .., "p99_ns": .., "p999_ns": .., "reads": ..} of random reads for so long.
#include <iostream>

#include "worker.h"

namespace {

using worker::require;

// Times in classes of a thirty-second of their size: exact enough for a ratio, and no memory that
// grows with the number of reads.
class Histogram {
 public:
  void add(uint64_t ns) {
    ++counts_[class_of(ns)];
    ++total_;
  }
  uint64_t total() const { return total_; }
  double percentile(double share) const {
    auto left = static_cast<uint64_t>(static_cast<double>(total_) * share);
    for (size_t at = 0; at < kClasses; ++at) {
      if (left < counts_[at]) return middle_of(at);
      left -= counts_[at];
    }
    return 0;
  }

 private:
  static constexpr unsigned kFineBits = 5;
  static constexpr size_t kClasses = size_t{64} << kFineBits;

  static size_t class_of(uint64_t ns) {
    ns = std::max<uint64_t>(ns, 1 << kFineBits);
    const auto power = static_cast<unsigned>(63 - __builtin_clzll(ns));
    return size_t{power} << kFineBits | (ns >> (power - kFineBits) & ((1 << kFineBits) - 1));
  }
  static double middle_of(size_t at) {
    const uint64_t fine = at & ((1 << kFineBits) - 1);
    const double unit = static_cast<double>(uint64_t{1} << ((at >> kFineBits) - kFineBits));
    return (static_cast<double>((1 << kFineBits) + fine) + 0.5) * unit;
  }

  std::vector<uint64_t> counts_ = std::vector<uint64_t>(kClasses);
  uint64_t total_ = 0;
};

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  const std::string path = options.positional(0);
  const uint64_t request = options.number("--request", 4096);
  worker::Random random(options.number("--seed", 1));
  const worker::Content content(0);
  worker::Buffer buffer(1 << 20);
  const int descriptor = open(path.c_str(), O_RDONLY);
  require(descriptor >= 0, "open " + path);
  struct stat status;
  require(fstat(descriptor, &status) == 0, "fstat");
  const auto size = static_cast<uint64_t>(status.st_size);
  for (uint64_t offset = 0; offset < size; offset += 1 << 20) {
    const size_t length = std::min<uint64_t>(1 << 20, size - offset);
    require(pread(descriptor, buffer.data(), length, static_cast<off_t>(offset)) ==
                static_cast<ssize_t>(length),
            "short read");
    if (memcmp(buffer.data(), content.at(offset), length) != 0) worker::fail("wrong content");
  }
  puts("ready");
  fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    const int64_t until = worker::now_ns() + std::stoll(line) * 1'000'000;
    Histogram times;
    for (int64_t now = worker::now_ns(); now < until;) {
      const uint64_t offset = random.below(size / request) * request;
      const ssize_t done = pread(descriptor, buffer.data(), request, static_cast<off_t>(offset));
      const int64_t then = worker::now_ns();
      require(done == static_cast<ssize_t>(request), "short read");
      times.add(static_cast<uint64_t>(then - now));
      if (memcmp(buffer.data(), content.at(offset), 64) != 0) worker::fail("wrong content");
      now = worker::now_ns();
    }
    printf("{\"p50_ns\": %.0f, \"p99_ns\": %.0f, \"p999_ns\": %.0f, \"reads\": %lu}\n",
           times.percentile(0.5), times.percentile(0.99), times.percentile(0.999), times.total());
    fflush(stdout);
  }
  return 0;
}
