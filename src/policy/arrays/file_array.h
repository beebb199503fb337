// SPDX-License-Identifier: Apache-2.0
// An array whose cells lie in a file one behind the other, in row-major order.
//
// Units: cells, and bytes where it says so. Thread safety: values.
#pragma once

#include <array>
#include <cstdint>

#include "policy/arrays/box.h"

namespace cairn::arrays {

// Boxes of other sizes are not gathered: smaller ones are read sooner than anybody hears of them.
inline constexpr std::uint64_t kGatheredBytesMin = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kGatheredBytesMax = std::uint64_t{64} << 20;

struct FileArray {
  Coordinates shape;
  std::uint64_t cell_bytes = 0;
  std::uint64_t offset = 0;  // of the first cell, bytes

  std::uint64_t bytes() const { return *whole(shape).cells() * cell_bytes; }
  std::uint64_t bytes_of(const Box& box) const { return *box.cells() * cell_bytes; }
  bool operator==(const FileArray&) const = default;
};

// Two words that name the cells of a box, as a region of their own (kind `region`). The same for
// all who see the same array in the same file: what the name does not say is which file that is.
std::array<std::uint64_t, 2> region_name(const FileArray& array, const Box& box);

// The same of the array itself.
std::array<std::uint64_t, 2> array_name(const FileArray& array);

// How many bytes follow each other in the file, in each row of a box. Requires: not empty.
std::uint64_t bytes_in_a_row(const FileArray& array, const Box& box);

}  // namespace cairn::arrays
