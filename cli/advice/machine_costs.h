// SPDX-License-Identifier: Apache-2.0
// What this machine's kernel takes for what no device has to do with: a call, and memory that
// nobody had before. Measured in some 50 ms, on files in memory.
//
// Thread safety: any thread. Ownership: values. Units: seconds, bytes per second. Errors: none;
// what cannot be measured has the figure of a usual machine, or 0 where it is as fast as memory.
#pragma once

namespace cairn::cli {

struct MachineCosts {
  double call_seconds = 500e-9;
  double fresh_mapped_bandwidth = 0;  // copies into shared memory, as a RAM tier is
  double fresh_cached_bandwidth = 0;  // pwrite() into a file of the kernel's cache
};

MachineCosts measure_machine_costs();

}  // namespace cairn::cli
