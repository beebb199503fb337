// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/packed_reads.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "frontends/hdf5/regions.h"
#include "policy/arrays/packed_array.h"

namespace cairn::hdf5 {
namespace {

using arrays::PackedArray;
using arrays::PackedChunk;

// The tiers may drop a table; a dataset whose table they do not keep is not worth more.
constexpr unsigned kTablesMax = 8;

struct TableMaking {
  const arrays::ChunkGrid& grid;
  const PackedArray& array;
  arrays::Box places;  // all of the grid
  std::vector<PackedChunk> table;
  bool is_sound = true;
};

// One chunk that the file has. HDF5 goes on while it gets 0.
int add_chunk(const hsize_t* first, unsigned skipped, haddr_t address, hsize_t bytes, void* data) {
  TableMaking& making = *static_cast<TableMaking*>(data);
  const arrays::Coordinates& chunk = making.array.chunk;
  arrays::Coordinates place = chunk;
  making.is_sound = address != HADDR_UNDEF && bytes != 0 && bytes <= UINT32_MAX;
  for (std::size_t at = 0; at < chunk.size() && making.is_sound; ++at) {
    place[at] = first[at] / chunk[at];
    making.is_sound = first[at] % chunk[at] == 0 && place[at] < making.places.count[at];
  }
  if (!making.is_sound) return H5_ITER_STOP;
  PackedChunk& entry = making.table[making.grid.number_at(place)];
  making.is_sound = entry.bytes == 0;
  entry = {address, static_cast<std::uint32_t>(bytes), skipped};
  return making.is_sound ? H5_ITER_CONT : H5_ITER_STOP;
}

CairnRegion region_of_table(const Dataset& dataset, const Array& array) {
  const auto name = arrays::chunk_table_name(*array.packed());
  CairnRegion region{};
  region.descriptor = dataset.file->source.descriptor;
  std::copy(name.begin(), name.end(), region.name);
  region.bytes = array.grid().chunks() * sizeof(PackedChunk);
  region.version = dataset.file->source.version;
  return region;
}

bool keep_table(const Dataset& dataset, const Array& array, hid_t transfer) {
  const OpenFile& file = *dataset.file;
  const arrays::ChunkGrid& grid = array.grid();
  TableMaking making{grid, *array.packed(), grid.chunks_of(arrays::whole(grid.array())),
                     std::vector<PackedChunk>(grid.chunks())};
  H5VL_native_dataset_optional_args_t native = {};
  native.chunk_iter.op = add_chunk;
  native.chunk_iter.op_data = &making;
  H5VL_optional_args_t question = {.op_type = H5VL_NATIVE_DATASET_CHUNK_ITER, .args = &native};
  const bool is_told = file.library.call.H5VLdataset_optional(dataset.lower, file.connector,
                                                              &question, transfer, nullptr) >= 0;
  if (!is_told || !making.is_sound) return false;
  const CairnRegion region = region_of_table(dataset, array);
  return region_calls()->keep(&region, making.table.data()) == 0;
}

// Looks at an entry of each block of it: the tiers drop blocks, not tables.
bool has_table(const Dataset& dataset, const Array& array) {
  constexpr std::size_t kBlocksMax = PackedArray::kChunksMax * sizeof(PackedChunk) / kBlockBytes;
  const CairnRegion region = region_of_table(dataset, array);
  std::array<PackedChunk, kBlocksMax> entries;
  std::array<CairnRegionPart, kBlocksMax> parts;
  std::size_t blocks = 0;
  for (std::uint64_t at = 0; at < region.bytes; at += kBlockBytes, ++blocks) {
    CAIRN_CHECK(blocks < kBlocksMax);
    parts[blocks] = {at, sizeof entries[blocks], &entries[blocks]};
  }
  return region_calls()->read(&region, parts.data(), blocks) == 0;
}

}  // namespace

void tell_of_packed_read(const Dataset& dataset, Array& array, const DatasetRead& read,
                         const arrays::Box& box) {
  CAIRN_DCHECK(array.is_packed());
  const PackedArray* packed = array.packed();
  if (packed == nullptr || dataset.file->source.version.is_fresh != 0 || !array.keeping.is_worth())
    return;
  // A program that reads row after row is in the same chunks for long.
  const arrays::Box places = array.grid().chunks_of(box);
  if (array.told_places == places) return;
  array.told_places = places;
  if (!has_table(dataset, array)) {
    if (array.tables_made == kTablesMax) return;
    ++array.tables_made;
    if (!keep_table(dataset, array, read.transfer)) return;
  }
  std::array<std::uint32_t, arrays::FilterList::kMost> filters{};
  const auto all = packed->filters.all();
  std::ranges::transform(all, filters.begin(),
                         [](auto filter) { return static_cast<std::uint32_t>(filter); });
  const CairnPackedRead told = {.descriptor = dataset.file->source.descriptor,
                                .dimensions = static_cast<std::uint32_t>(box.dimensions()),
                                .filter_count = static_cast<std::uint32_t>(all.size()),
                                .reserved = 0,
                                .filters = filters.data(),
                                .cell_bytes = packed->cell_bytes,
                                .token = {packed->token[0], packed->token[1]},
                                .shape = packed->shape.all().data(),
                                .chunk = packed->chunk.all().data(),
                                .first = box.first.all().data(),
                                .count = box.count.all().data()};
  (void)region_calls()->tell_packed(&told);
}

}  // namespace cairn::hdf5
