// SPDX-License-Identifier: Apache-2.0
// Copies cells from one box to another: from cached chunks to what a program asked for, and back.
//
// Both boxes lie in memory in row-major order, without gaps. Cells that follow each other in both
// are copied at once: rows, or whole planes where the boxes have the same rows.
//
// Units: cells, and bytes where it says so. Thread safety: the caller sees to it that nobody writes
// to `from` or touches `to` meanwhile. Ownership: none is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/arrays/box.h"

namespace cairn::arrays {

// A box of cells in memory.
struct ReadableCells {
  const std::byte* bytes = nullptr;
  Box box;
};
struct WritableCells {
  std::byte* bytes = nullptr;
  Box box;
};

// Bytes that follow each other in both memories.
struct CopyRun {
  std::uint64_t from = 0;  // bytes behind the beginning of each
  std::uint64_t to = 0;
  std::uint64_t bytes = 0;
};

// What copy_cells() copies, in the order of `what`. Requires: as there, of the boxes.
std::vector<CopyRun> runs_between(const Box& what, std::size_t cell_bytes, const Box& from,
                                  const Box& to);

// Copies the cells of `what`. Requires: both boxes contain them; the memories do not overlap.
void copy_cells(const Box& what, std::size_t cell_bytes, const ReadableCells& from,
                const WritableCells& to);

}  // namespace cairn::arrays
