// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/packed_array.h"

#include <algorithm>

#include "base/check.h"
#include "policy/arrays/region_name.h"

namespace cairn::arrays {

std::optional<FilterList> FilterList::of(std::span<const std::uint32_t> numbers) {
  if (numbers.empty() || numbers.size() > kMost) return std::nullopt;
  FilterList list;
  for (const std::uint32_t number : numbers) {
    const auto filter = static_cast<PlainFilter>(number);
    const bool is_plain = filter == PlainFilter::kDeflate || filter == PlainFilter::kShuffle ||
                          filter == PlainFilter::kFletcher32;
    if (!is_plain || std::ranges::find(list.all(), filter) != list.all().end()) return std::nullopt;
    list.filters_[list.count_++] = filter;
  }
  CAIRN_DCHECK(list.count_ == numbers.size());
  return list;
}

std::optional<ChunkGrid> PackedArray::grid() const {
  if (shape.size() == 0 || chunk.size() != shape.size() || cell_bytes == 0) return std::nullopt;
  std::uint64_t bytes = cell_bytes;
  Coordinates cut = chunk;
  for (std::size_t at = 0; at < chunk.size(); ++at) {
    if (shape[at] == 0 || chunk[at] == 0 || bytes > kChunkBytesMax / chunk[at]) return std::nullopt;
    bytes *= chunk[at];
    cut[at] = std::min(chunk[at], shape[at]);
  }
  const auto made = ChunkGrid::of(shape, ChunkShape::plain(cut));
  if (!made || made->chunks() > kChunksMax) return std::nullopt;
  return *made;
}

std::uint64_t PackedArray::chunk_bytes() const {
  std::uint64_t bytes = cell_bytes;
  for (const std::uint64_t cells : chunk.all()) bytes *= cells;
  CAIRN_DCHECK(bytes != 0);
  CAIRN_DCHECK(bytes <= kChunkBytesMax);
  return bytes;
}

Box PackedArray::file_chunk(const ChunkGrid& grid, std::uint64_t number) const {
  return {grid.chunk(number).first, chunk};
}

std::array<std::uint64_t, 2> chunk_table_name(const PackedArray& array) {
  // Not as a packed chunk's, which begins with the token.
  constexpr std::uint64_t kOfTable = 0x7461626c65;
  RegionName name;
  name.add(kOfTable);
  name.add_all(array.token);
  name.add(array.cell_bytes);
  name.add_all(array.shape.all());
  name.add_all(array.chunk.all());
  for (const PlainFilter filter : array.filters.all()) name.add(static_cast<std::uint64_t>(filter));
  return name.words();
}

bool is_sound(std::span<const PackedChunk> table, const PackedArray& array,
              std::uint64_t file_bytes) {
  const auto grid = array.grid();
  if (!grid || table.size() != grid->chunks()) return false;
  // What deflate makes of bytes that it cannot pack, and a checksum, with room to spare.
  const std::uint64_t bytes_max = array.chunk_bytes() + array.chunk_bytes() / 64 + 1024;
  return std::ranges::all_of(table, [&](const PackedChunk& chunk) {
    return chunk.bytes <= bytes_max && chunk.bytes <= file_bytes &&
           chunk.offset <= file_bytes - chunk.bytes;
  });
}

}  // namespace cairn::arrays
