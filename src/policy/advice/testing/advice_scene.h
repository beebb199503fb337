// SPDX-License-Identifier: Apache-2.0
// Accesses that are few enough to be counted by hand, and round devices, for tests of advice.
//
// Thread safety: none. Ownership: values.
#pragma once

#include <cstdint>

#include "policy/advice/forecast.h"
#include "policy/miss_ratios/sampled_pages.h"

namespace cairn::advice {

inline constexpr double kMib = 1 << 20;
inline constexpr auto kBlock = static_cast<double>(kBlockBytes);

// Round numbers: 1 ms, and another for each block, so that one takes 2 ms at a time.
inline DeviceSpeed slow_store() {
  return {.read_bandwidth = kBlock / 1e-3,
          .write_bandwidth = kBlock / 1e-3,
          .read_latency = 1e-3,
          .write_latency = 1e-3,
          .queue_depth = 1,
          .error = 1,
          .is_memory = false,
          .source = "test"};
}

inline DeviceSpeed instant() {
  return {.read_bandwidth = 1e15,
          .write_bandwidth = 1e15,
          .read_latency = 1e-12,
          .write_latency = 1e-12,
          .queue_depth = 1,
          .error = 1,
          .is_memory = true,
          .source = "test"};
}

inline Machine machine_of_test() {
  return {.memory = instant(),
          .store = slow_store(),
          .page_cache_bytes = 0,
          .memory_bytes_max = 4096 * kMib,
          .processors = 1};
}

// Accesses, and the workload that they are.
class Scene {
 public:
  Scene& access(std::uint64_t block, bool is_write, double at_seconds, std::uint32_t length = 65536,
                std::uint32_t file = 0) {
    const Access access{.time_ns = static_cast<std::uint64_t>(at_seconds * 1e9),
                        .offset = block * kBlockBytes,
                        .length = length,
                        .file = file,
                        .stream = 0,
                        .is_write = is_write,
                        .was_hit = false};
    summary_.add(access, [&](std::uint64_t used) {
      const std::uint64_t key = std::uint64_t{file} << 40 | used;
      all_.reference(key);
      is_write ? reads_.touch(key) : reads_.reference(key);
    });
    return *this;
  }
  // Each other block, so that no use is sequential.
  Scene& read_apart(unsigned blocks, double seconds_each = 0) {
    for (unsigned block = 0; block < blocks; ++block) {
      access(2ULL * block, false, now_);
      now_ += seconds_each;
    }
    return *this;
  }
  Workload workload() const {
    Workload work;
    work.accesses = summary_.summary();
    work.reuse.reads = reads_.curve();
    work.reuse.all = all_.curve();
    work.reuse.blocks = all_.pages();
    work.reuse.hot_blocks = all_.hot_set_pages();
    return work;
  }

 private:
  SummaryBuilder summary_;
  SampledPages all_;
  SampledPages reads_;
  double now_ = 0;
};

inline Plan plan_with(double ram_bytes) {
  Plan plan;
  plan.name = "test";
  plan.ram_bytes = ram_bytes;
  return plan;
}

}  // namespace cairn::advice
