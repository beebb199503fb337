// SPDX-License-Identifier: Apache-2.0
// A dataset whose chunks lie packed in a file, and where they lie there: what it takes to unpack
// one without the library that has packed it.
//
// The table of chunks comes from a program, so nobody uses one that is not sound.
//
// Units: cells, and bytes where it says so. Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

// By their registered numbers: those that can be undone by anybody.
enum class PlainFilter : std::uint32_t { kDeflate = 1, kShuffle = 2, kFletcher32 = 3 };

// What filters a chunk went through, in that order; each once.
class FilterList {
 public:
  static constexpr std::size_t kMost = 3;

  // None where one of them is no plain filter, or comes twice, or there is none at all.
  static std::optional<FilterList> of(std::span<const std::uint32_t> numbers);

  std::span<const PlainFilter> all() const { return {filters_.data(), count_}; }
  bool operator==(const FilterList&) const = default;

 private:
  std::array<PlainFilter, kMost> filters_{};
  std::size_t count_ = 0;
};

struct PackedArray {
  // More chunks, or larger ones, are left to the library.
  static constexpr std::uint64_t kChunksMax = std::uint64_t{1} << 14;
  static constexpr std::uint64_t kChunkBytesMax = std::uint64_t{16} << 20;

  std::array<std::uint64_t, 2> token{};  // what the library names the dataset by in the file
  Coordinates shape;
  Coordinates chunk;  // of the file: a dataset that grows may be smaller than its chunk
  std::uint64_t cell_bytes = 0;
  FilterList filters;

  // The chunks as the tiers have them, which are cut at the edges of the array. None where the
  // numbers are no array's that can be unpacked.
  std::optional<ChunkGrid> grid() const;
  // A whole chunk, as the file has it also at the edges. Requires: it has a grid.
  std::uint64_t chunk_bytes() const;
  // The cells of such a chunk, some of which may be beyond the array. Requires: as chunk_bytes().
  Box file_chunk(const ChunkGrid& grid, std::uint64_t number) const;
  bool operator==(const PackedArray&) const = default;
};

// A chunk in the file, as a table has it.
struct PackedChunk {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;    // 0: it is not stored
  std::uint32_t skipped = 0;  // filters that it has not gone through, a bit each

  std::uint64_t end() const { return offset + bytes; }
  // Whether it went through all filters.
  bool is_plain() const { return bytes != 0 && skipped == 0; }
};
static_assert(sizeof(PackedChunk) == 16);

// Two words that name the table of its chunks as a region of its file: one entry for each chunk of
// the grid, in the order of their numbers.
std::array<std::uint64_t, 2> chunk_table_name(const PackedArray& array);

// Whether those may be the chunks of the array in a file of that size.
bool is_sound(std::span<const PackedChunk> table, const PackedArray& array,
              std::uint64_t file_bytes);

}  // namespace cairn::arrays
