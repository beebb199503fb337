// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/memory_measure.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "service/profiler/system_text.h"

namespace cairn::profiler {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLargestBlockBytes = size_t{1} << 20;
constexpr uint64_t kRegionBytesMin = uint64_t{8} << 20;
// Four million lines take longer to shuffle than to measure; this is beyond all caches but the
// largest, and those are shared by many cores.
constexpr uint64_t kChainBytesMax = uint64_t{128} << 20;
constexpr unsigned kSlices = 8;

// 64 KiB is a block of the tier, whose cells give the bandwidth.
constexpr std::array<uint32_t, 3> kBlockBytes = {4 << 10, 64 << 10, 1 << 20};
constexpr uint32_t kTierBlockBytes = 64 << 10;
static_assert(kBlockBytes[1] == kTierBlockBytes && kBlockBytes.back() <= kLargestBlockBytes);
static_assert(kChainBytesMax / kLineBytes <= UINT32_MAX, "a line has the number of the next");

// A mapping that asks for huge pages, as the RAM tier does.
class Region {
 public:
  explicit Region(size_t bytes) : bytes_(bytes) {
    void* place =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(place);
    (void)::madvise(memory_, bytes, MADV_HUGEPAGE);
    std::memset(memory_, 1, bytes);
  }
  ~Region() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* memory() const { return memory_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_;
};

// Without effect where the system does not permit it: the figures are then those of whatever node
// the thread runs on.
void bind_this_thread(const MemoryNode& node) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const unsigned cpu : node.cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &processors);
  }
  if (!node.cpus.empty()) (void)::sched_setaffinity(0, sizeof processors, &processors);
  constexpr size_t kWordBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> nodes{};
  if (node.id >= nodes.size() * kWordBits) return;
  nodes[node.id / kWordBits] |= 1UL << (node.id % kWordBits);
  // The kernel takes one bit less than the argument says.
  (void)::syscall(SYS_set_mempolicy, MPOL_BIND, nodes.data(), nodes.size() * kWordBits + 1);
}

class MemoryMeasurement {
 public:
  explicit MemoryMeasurement(const MemoryMeasureOptions& options)
      : options_(options), region_(region_bytes(options)), block_(kLargestBlockBytes) {}

  Status run(DeviceFigures* figures) {
    if (region_.memory() == nullptr || block_.memory() == nullptr) {
      return Status::from_errno(ENOMEM, "measuring memory");
    }
    const int64_t start_ns = monotonic_ns();
    for (const uint32_t bytes : kBlockBytes) {
      for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
        figures->cells.push_back(copy(direction, bytes));
        if (bytes != kTierBlockBytes) continue;
        Spread& headline =
            direction == Direction::kRead ? figures->read_bandwidth : figures->write_bandwidth;
        headline = figures->cells.back().bandwidth;
      }
    }
    figures->read_latency = chase();
    figures->write_latency = figures->read_latency;
    figures->seconds = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
    if (is_cancelled()) return {StatusCode::kRetry, "memory: the measurement was stopped"};
    return Status::ok();
  }

 private:
  static size_t region_bytes(const MemoryMeasureOptions& options) {
    const uint64_t available = meminfo_bytes(read_text("/proc/meminfo"), "MemAvailable:");
    const uint64_t bytes = std::min(options.region_bytes, available / 8);
    return std::max(bytes, kRegionBytesMin) / kLargestBlockBytes * kLargestBlockBytes;
  }

  bool is_cancelled() const {
    return options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed);
  }

  int64_t slice_ns() const {
    constexpr double kSeries = 2 * kBlockBytes.size() + 1;
    return static_cast<int64_t>(options_.seconds / kSeries / kSlices * 1e9);
  }

  // Calls `batch`, which does a number of operations and returns it, for each slice's time.
  // Returns: operations per second of the slices.
  template <typename Batch>
  std::vector<double> in_slices(Batch batch, uint64_t* operations) const {
    std::vector<double> rates;
    batch();  // the code and the first lines are warm
    for (unsigned slice = 0; slice < kSlices && !is_cancelled(); ++slice) {
      const int64_t start_ns = monotonic_ns();
      int64_t now_ns = start_ns;
      uint64_t count = 0;
      while (now_ns - start_ns < std::max<int64_t>(slice_ns(), 1)) {
        count += batch();
        now_ns = monotonic_ns();
      }
      *operations += count;
      rates.push_back(static_cast<double>(count) * 1e9 / static_cast<double>(now_ns - start_ns));
    }
    return rates;
  }

  CellFigures copy(Direction direction, uint32_t bytes) {
    const RequestPattern pattern = {
        .request_bytes = bytes, .sequential = false, .region_bytes = region_.bytes()};
    CAIRN_CHECK(bytes <= block_.bytes() && bytes <= region_.bytes());
    const uint64_t batch_size = kLargestBlockBytes / bytes;
    std::vector<std::byte*> places;
    for (uint64_t index = 0; index < region_.bytes() / bytes; ++index) {
      places.push_back(region_.memory() + request_offset(pattern, index));
    }
    size_t next = 0;
    CellFigures cell = {.direction = direction, .request_bytes = bytes, .depth = 1};
    const auto batch = [&] {
      for (uint64_t index = 0; index < batch_size; ++index) {
        std::byte* place = places[next];
        if (++next == places.size()) next = 0;
        if (direction == Direction::kRead) {
          std::memcpy(block_.memory(), place, bytes);
        } else {
          std::memcpy(place, block_.memory(), bytes);
        }
        asm volatile("" ::: "memory");  // the copy counts although nobody looks at it
      }
      return batch_size;
    };
    const Spread rate = spread_of(in_slices(batch, &cell.requests));
    cell.bandwidth = rate.scaled(bytes);
    cell.latency = rate.inverted(1);
    return cell;
  }

  // One cycle through all lines in random order (Sattolo's algorithm), so that the chain does not
  // fall into a short loop that a cache holds.
  Spread chase() {
    const size_t lines = std::min<uint64_t>(region_.bytes(), kChainBytesMax) / kLineBytes;
    std::vector<uint32_t> order(lines);
    std::iota(order.begin(), order.end(), 0U);
    std::minstd_rand numbers(1);
    for (size_t index = lines - 1; index > 0; --index) {
      std::swap(order[index], order[numbers() % index]);
    }
    for (size_t line = 0; line < lines; ++line) {
      std::memcpy(region_.memory() + line * kLineBytes, &order[line], sizeof order[line]);
    }
    uint32_t line = 0;
    const auto batch = [&] {
      constexpr uint64_t kSteps = 4096;
      for (uint64_t step = 0; step < kSteps; ++step) {
        std::memcpy(&line, region_.memory() + size_t{line} * kLineBytes, sizeof line);
      }
      asm volatile("" : : "r"(line) : "memory");
      return kSteps;
    };
    uint64_t steps = 0;
    return spread_of(in_slices(batch, &steps)).inverted(1);
  }

  const MemoryMeasureOptions& options_;
  Region region_;
  Region block_;  // the program's buffer
};

}  // namespace

Result<DeviceFigures> measure_memory(const MemoryNode& node, const MemoryMeasureOptions& options) {
  DeviceFigures figures;
  Status status;
  try {
    std::thread([&] {
      if (options.bind) bind_this_thread(node);
      status = MemoryMeasurement(options).run(&figures);
    }).join();
  } catch (const std::system_error& error) {
    return Status::from_errno(error.code().value(), "cannot start a thread");
  }
  if (!status.is_ok()) return status;
  return figures;
}

}  // namespace cairn::profiler
