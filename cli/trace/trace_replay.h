// SPDX-License-Identifier: Apache-2.0
//
// A trace put through the experts of replacement: how many of its references each would have missed
// with caches of several sizes, beside the best that is possible (MIN; Belady, "A study of
// replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966).
//
// Thread safety: pure function. Ownership: a table of numbers. Memory: about 30 bytes a reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/trace/trace_event.h"

namespace cairn::cli {

struct ReplayOptions {
  std::uint64_t page_bytes = 512 * 1024;
  std::vector<double> percents = {1, 5, 10, 20, 40};  // cache sizes, of the footprint
  std::vector<std::string> experts;
};

struct ReplayRow {
  std::uint64_t pages = 0;            // of the cache
  std::uint64_t misses_min = 0;       // of the best that is possible
  std::vector<std::uint64_t> misses;  // by expert
};

struct ReplayTable {
  std::uint64_t references = 0;
  std::uint64_t footprint_pages = 0;
  std::vector<ReplayRow> rows;
};

// Reads the trace to its end. Errors: those of the trace; kInvalid for an unknown expert.
Result<ReplayTable> replay(TraceSource& trace, const ReplayOptions& options);

}  // namespace cairn::cli
