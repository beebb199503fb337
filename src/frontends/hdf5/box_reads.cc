// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/box_reads.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "frontends/hdf5/dataset_news.h"
#include "frontends/hdf5/regions.h"
#include "policy/arrays/box_copy.h"
#include "policy/arrays/chunk_query.h"

namespace cairn::hdf5 {
namespace {

using arrays::Box;

// Longer rows are as fast from the file's own blocks.
constexpr std::uint64_t kRowBytesMax = std::uint64_t{64} << 10;
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 18;

bool is_worth_gathering(const arrays::FileArray& array, const Box& box) {
  const std::uint64_t bytes = array.bytes_of(box);
  const std::uint64_t row_bytes = arrays::bytes_in_a_row(array, box);
  return bytes >= arrays::kGatheredBytesMin && bytes <= arrays::kGatheredBytesMax &&
         row_bytes < kRowBytesMax && bytes / row_bytes <= kRowsMax;
}

// Chunks that one read is put together of, at most.
constexpr std::uint64_t kChunksMax = 64;
// What the node has no time to hear is said again, so much of it.
constexpr std::size_t kUntoldMax = 16;
constexpr std::size_t kToldChunksMax = 16;

// Returns whether the node has heard of it.
bool tell_box(const Dataset& dataset, const Array& array, const Box& box, bool was_kept) {
  const arrays::FileArray& in_file = array.in_file();
  const CairnArrayRead read = {.descriptor = dataset.file->source.descriptor,
                               .dimensions = static_cast<std::uint32_t>(box.dimensions()),
                               .was_kept = was_kept ? 1U : 0U,
                               .reserved = 0,
                               .cell_bytes = in_file.cell_bytes,
                               .offset = in_file.offset,
                               .shape = in_file.shape.all().data(),
                               .first = box.first.all().data(),
                               .count = box.count.all().data()};
  return region_calls()->tell(&read) != -EAGAIN;
}

// A box that nobody waits for any more counts as one that is waited for until the node hears of it.
void tell(const Dataset& dataset, Array& array, const Box& box, bool was_kept) {
  while (!array.untold.empty() && tell_box(dataset, array, array.untold.front(), true))
    array.untold.pop_front();
  if (tell_box(dataset, array, box, was_kept) || !was_kept) return;
  if (array.untold.size() == kUntoldMax) array.untold.pop_front();
  array.untold.push_back(box);
}

CairnRegion region_of(const Dataset& dataset, const Array& array, const Box& box) {
  const auto name = arrays::region_name(array.in_file(), box);
  CairnRegion region{};
  region.descriptor = dataset.file->source.descriptor;
  std::copy(name.begin(), name.end(), region.name);
  region.bytes = array.bytes_of(box);
  region.version = dataset.file->source.version;
  return region;
}

std::optional<arrays::ChunkGrid> grid_of(const Dataset& dataset, const Array& array) {
  const std::size_t dimensions = array.shape().size();
  std::array<std::uint64_t, 4 * arrays::kDimensionsMax> numbers{};
  const auto name = arrays::array_name(array.in_file());
  if (region_calls()->grid(dataset.file->source.descriptor, name.data(),
                           static_cast<std::uint32_t>(dimensions), numbers.data()) != 0)
    return std::nullopt;
  const auto row = [&](std::size_t which) {
    return arrays::Coordinates(std::span(numbers).subspan(which * dimensions, dimensions));
  };
  const auto grid = arrays::ChunkGrid::of(array.shape(), {row(0), {row(1), row(2)}, row(3)});
  return grid ? std::optional(*grid) : std::nullopt;
}

// Copies cells of a chunk to where they are in the box that the buffer is for.
bool copy_cells(const CairnRegion& region, std::span<const arrays::CopyRun> runs, void* buffer) {
  std::vector<CairnRegionPart> parts;
  for (const arrays::CopyRun& run : runs)
    parts.push_back({run.from, run.bytes, static_cast<char*>(buffer) + run.to});
  return region_calls()->read(&region, parts.data(), parts.size()) == 0;
}

// The node hears of the chunk, not of the part: its grid stays, and the next chunks follow.
void tell_of_part(const Dataset& dataset, Array& array, const arrays::ChunkGrid& grid,
                  std::uint64_t chunk) {
  std::deque<std::uint64_t>& told = array.told_chunks;
  if (std::find(told.begin(), told.end(), chunk) != told.end()) return;
  if (told.size() == kToldChunksMax) told.pop_front();
  told.push_back(chunk);
  tell(dataset, array, grid.with_ghost(chunk), true);
}

// The box is no chunk: it may be a part of one, or lie across several.
bool read_from_chunks(const Dataset& dataset, Array& array, const DatasetRead& read,
                      const Box& box) {
  const auto grid = grid_of(dataset, array);
  if (!grid || grid->chunks_of(box).cells().value_or(UINT64_MAX) > kChunksMax) return false;
  const auto is_cached = [&](std::uint64_t chunk) {
    const CairnRegion region = region_of(dataset, array, grid->with_ghost(chunk));
    return region_calls()->read(&region, nullptr, 0) == 0;
  };
  const arrays::ChunkQuery query = arrays::query(*grid, box, is_cached);
  if (query.match == arrays::Match::kNone || query.match == arrays::Match::kSome) return false;
  for (const arrays::QueryPiece& piece : query.pieces) {
    const Box chunk = grid->with_ghost(piece.chunk);
    const auto runs = arrays::runs_between(piece.cells, array.cell_bytes(), chunk, box);
    if (!copy_cells(region_of(dataset, array, chunk), runs, read.buffer)) return false;
  }
  for (const arrays::QueryPiece& piece : query.pieces)
    tell_of_part(dataset, array, *grid, piece.chunk);
  return true;
}

}  // namespace

bool read_gathered(const Dataset& dataset, Array& array, const DatasetRead& read, const Box& box) {
  CAIRN_DCHECK(!array.is_packed());
  CAIRN_DCHECK(dataset.file->source.is_open());
  array.under_way.reset();
  if (!is_worth_gathering(array.in_file(), box))
    return leave(dataset, arrays::LeftReason::kPlainBox);
  const CairnRegion region = region_of(dataset, array, box);
  const CairnRegionPart all = {0, region.bytes, read.buffer};
  const int error = region_calls()->read(&region, &all, 1);
  if (error == 0) {
    note_served(dataset, region.bytes);
    tell(dataset, array, box, true);
    return true;
  }
  if (error == -ENODATA && read_from_chunks(dataset, array, read, box)) {
    note_served(dataset, region.bytes);
    return true;
  }
  array.under_way = box;
  return leave(dataset, arrays::LeftReason::kNotThere);
}

void tell_of_read(const Dataset& dataset) {
  auto* array = static_cast<Array*>(dataset.array);
  if (array == nullptr || !array->under_way) return;
  tell(dataset, *array, *std::exchange(array->under_way, std::nullopt), false);
}

}  // namespace cairn::hdf5
