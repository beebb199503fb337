// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/row_reads.h"

#include <algorithm>

#include "base/check.h"
#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {
namespace {

// Calls visit(run) for each row of the box, in the order of the file.
template <typename Visit>
void for_each_row(const Coordinates& array, std::size_t cell_bytes, const Box& box, Visit&& visit) {
  CAIRN_CHECK(cell_bytes > 0 && whole(array).contains(box));
  if (box.is_empty()) return;
  const std::size_t dimensions = box.dimensions();
  // One cell stands for its row.
  Box rows = box;
  const std::uint64_t row_cells = dimensions == 0 ? 1 : box.count[dimensions - 1];
  if (dimensions != 0) rows.count[dimensions - 1] = 1;
  Coordinates place = rows.first;
  do {
    std::uint64_t cell = 0;
    for (std::size_t at = 0; at < dimensions; ++at) cell = cell * array[at] + place[at];
    visit(ByteRun{cell * cell_bytes, row_cells * cell_bytes});
  } while (next_place(rows, &place));
}

// The same of all rows, joined where at most `gap` bytes are between them.
std::vector<ByteRun> joined_rows(const Coordinates& array, std::size_t cell_bytes, const Box& box,
                                 std::uint64_t gap, std::uint64_t bytes_max) {
  std::vector<ByteRun> runs;
  for_each_row(array, cell_bytes, box, [&](const ByteRun& row) {
    const bool joins = !runs.empty() && row.offset - runs.back().end() <= gap &&
                       row.end() - runs.back().offset <= bytes_max;
    if (joins) {
      runs.back().bytes = row.end() - runs.back().offset;
    } else {
      runs.push_back(row);
    }
  });
  return runs;
}

}  // namespace

std::uint64_t ReadCost::gap_bytes() const {
  constexpr double kMost = 1ULL << 40;
  return static_cast<std::uint64_t>(std::clamp(request_seconds * bytes_per_second, 0.0, kMost));
}

std::vector<ByteRun> runs_of(const Coordinates& array, std::size_t cell_bytes, const Box& box) {
  return joined_rows(array, cell_bytes, box, 0, UINT64_MAX);
}

std::vector<ByteRun> plan_reads(const Coordinates& array, std::size_t cell_bytes, const Box& box,
                                const ReadCost& cost) {
  CAIRN_CHECK(cost.bytes_max > 0);
  std::vector<ByteRun> reads;
  for (ByteRun run : joined_rows(array, cell_bytes, box, cost.gap_bytes(), cost.bytes_max)) {
    for (; run.bytes > cost.bytes_max; run.offset += cost.bytes_max, run.bytes -= cost.bytes_max)
      reads.push_back({run.offset, cost.bytes_max});
    reads.push_back(run);
  }
  return reads;
}

}  // namespace cairn::arrays
