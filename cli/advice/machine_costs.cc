// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/machine_costs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace cairn::cli {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kFileBytes = std::size_t{8} << 20;
constexpr unsigned kCalls = 2000;
static_assert(kFileBytes % kPieceBytes == 0);

class MemoryFileOfOwn {
 public:
  MemoryFileOfOwn() : descriptor_(::memfd_create("cairn-advise", MFD_CLOEXEC)) {
    if (descriptor_ >= 0 && ::ftruncate(descriptor_, kFileBytes) == 0) return;
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  ~MemoryFileOfOwn() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  MemoryFileOfOwn(const MemoryFileOfOwn&) = delete;
  MemoryFileOfOwn& operator=(const MemoryFileOfOwn&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

template <typename Work>
double seconds_of_work(Work work) {
  const std::int64_t began_ns = monotonic_ns();
  work();
  const std::int64_t taken_ns = std::max<std::int64_t>(monotonic_ns() - began_ns, 1);
  return static_cast<double>(taken_ns) / static_cast<double>(kNanosPerSecond);
}

double mapped_bandwidth(const std::vector<std::byte>& piece) {
  const MemoryFileOfOwn file;
  if (file.descriptor() < 0) return 0;
  void* const memory =
      ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (memory == MAP_FAILED) return 0;
  const double seconds = seconds_of_work([&] {
    for (std::size_t at = 0; at < kFileBytes; at += kPieceBytes)
      std::memcpy(static_cast<std::byte*>(memory) + at, piece.data(), kPieceBytes);
  });
  ::munmap(memory, kFileBytes);
  return kFileBytes / seconds;
}

double cached_bandwidth(const std::vector<std::byte>& piece) {
  const MemoryFileOfOwn file;
  if (file.descriptor() < 0) return 0;
  bool is_whole = true;
  const double seconds = seconds_of_work([&] {
    for (std::size_t at = 0; at < kFileBytes; at += kPieceBytes)
      is_whole &= ::pwrite(file.descriptor(), piece.data(), kPieceBytes, static_cast<off_t>(at)) ==
                  static_cast<ssize_t>(kPieceBytes);
  });
  return is_whole ? kFileBytes / seconds : 0;
}

double call_seconds() {
  const MemoryFileOfOwn file;
  if (file.descriptor() < 0) return MachineCosts().call_seconds;
  char byte = 0;
  ssize_t sum = 0;
  const double seconds = seconds_of_work([&] {
    for (unsigned call = 0; call < kCalls; ++call)
      sum += ::pread(file.descriptor(), &byte, 1, static_cast<off_t>(call));
  });
  return sum == kCalls ? seconds / kCalls : MachineCosts().call_seconds;
}

}  // namespace

BestRate best_rate(const std::function<double()>& measure) {
  constexpr std::size_t kTimes = 5;
  constexpr std::size_t kRoundsMax = 3;
  std::vector<double> rates;
  BestRate best;
  for (std::size_t round = 0; round < kRoundsMax; ++round) {
    for (std::size_t time = 0; time < kTimes; ++time) {
      const double rate = measure();
      CAIRN_CHECK(rate >= 0);
      if (rate == 0) return {};
      rates.push_back(rate);
    }
    // The last round alone has the spread, as the machine may be idle again.
    std::ranges::sort(rates.end() - kTimes, rates.end());
    best.rate = std::max(best.rate, rates.back());
    best.spread = best.rate / rates[rates.size() - 1 - kTimes / 2] - 1;
    if (best.spread <= kSpreadMax) break;
  }
  CAIRN_CHECK(best.spread >= 0);
  return best;
}

MachineCosts measure_machine_costs() {
  const std::vector<std::byte> piece(kPieceBytes, std::byte{1});
  MachineCosts costs;
  const BestRate mapped = best_rate([&] { return mapped_bandwidth(piece); });
  const BestRate cached = best_rate([&] { return cached_bandwidth(piece); });
  const BestRate calls = best_rate([] { return 1 / call_seconds(); });
  costs.fresh_mapped_bandwidth = mapped.rate;
  costs.fresh_cached_bandwidth = cached.rate;
  costs.call_seconds = 1 / calls.rate;
  costs.spread = std::max({mapped.spread, cached.spread, calls.spread});
  CAIRN_CHECK(costs.call_seconds > 0);
  return costs;
}

}  // namespace cairn::cli
