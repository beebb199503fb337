// SPDX-License-Identifier: Apache-2.0
// What this machine's kernel takes for what no device has to do with: a call, and memory that
// nobody had before. Measured in some 80 ms, on files in memory; in up to three times that where
// the timings disagree, as they do beside other work.
//
// Thread safety: any thread. Ownership: values. Units: seconds, bytes per second. Errors: none;
// what cannot be measured has the figure of a usual machine, or 0 where it is as fast as memory.
#pragma once

#include <functional>

namespace cairn::cli {

struct MachineCosts {
  double call_seconds = 500e-9;
  double fresh_mapped_bandwidth = 0;  // copies into shared memory, as a RAM tier is
  double fresh_cached_bandwidth = 0;  // pwrite() into a file of the kernel's cache
  // How much longer the middle one of the timings took than the best one, as a share of that: the
  // largest of the three costs.
  double spread = 0;
};

// Timings above this spread are repeated, and told where that did not help.
inline constexpr double kSpreadMax = 0.25;

// The highest of several rates, because other work only ever adds time.
struct BestRate {
  double rate = 0;
  double spread = 0;
};
// Stops at a rate of 0, which could not be measured.
BestRate best_rate(const std::function<double()>& measure);

MachineCosts measure_machine_costs();

}  // namespace cairn::cli
