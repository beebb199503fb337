// SPDX-License-Identifier: Apache-2.0
// In what pieces a box of an array is read whose rows lie one behind the other in a file.
//
// A box has many short rows, and a request to a store costs more than their bytes. Rows are read
// together, with what lies between them, where those bytes cost less than one more request ("data
// sieving": Thakur, Gropp and Lusk, Frontiers '99). A long run is cut, so that several requests
// are on their way at a time.
//
// Units: bytes, from the array's first cell on; seconds. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/arrays/box.h"

namespace cairn::arrays {

// Bytes of an array that follow each other in the file.
struct ByteRun {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  std::uint64_t end() const { return offset + bytes; }
  bool operator==(const ByteRun&) const = default;
};

// What a request to the store costs, as the profiler measures it.
struct ReadCost {
  double request_seconds = 0;
  double bytes_per_second = 1;
  std::uint64_t bytes_max = std::uint64_t{4} << 20;  // of one request

  // The most bytes that nobody wants and that cost less than a request.
  std::uint64_t gap_bytes() const;
};

// The runs of a box, in the order of the file; those that touch are one. Requires: a box of the
// array; the array has fewer than 2^64 bytes.
std::vector<ByteRun> runs_of(const Coordinates& array, std::size_t cell_bytes, const Box& box);

// The requests that read them. Requires: as runs_of(); bytes_max > 0.
std::vector<ByteRun> plan_reads(const Coordinates& array, std::size_t cell_bytes, const Box& box,
                                const ReadCost& cost);

}  // namespace cairn::arrays
