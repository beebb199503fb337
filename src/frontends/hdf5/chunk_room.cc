// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/chunk_room.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

using arrays::Coordinates;

// HDF5's names of the properties, and what stands for the file's (H5Dpublic.h).
constexpr const char* kCacheBytes = "rdcc_nbytes";
constexpr const char* kCachePlaces = "rdcc_nslots";
constexpr std::size_t kOfTheFile = SIZE_MAX;

constexpr std::uint64_t kRowBytesMost = std::uint64_t{64} << 20;
// HDF5 needs some hundred bytes more for each chunk.
constexpr std::uint64_t kChunkBytesLeast = 4096;
constexpr std::uint64_t kPlacesMost = std::uint64_t{1} << 20;
constexpr std::size_t kPlacesOfAFile = 521;  // at least, unless the program chooses

// More than HDF5 gives them, of all datasets that are open. The library calls one at a time, but
// there may be several libraries.
std::atomic<std::uint64_t> given{0};

bool get_size(const Hdf5Functions& call, hid_t list, const char* name, std::size_t* value) {
  return call.H5Pexist(list, name) > 0 && call.H5Pget(list, name, value) >= 0;
}

// Empty where the dataset is not chunked.
Coordinates chunk_of(const Hdf5Functions& call, hid_t creation) {
  if (call.H5Pget_layout(creation) != H5D_CHUNKED) return {};
  std::array<hsize_t, arrays::kDimensionsMax> sizes{};
  const int dimensions = call.H5Pget_chunk(creation, static_cast<int>(sizes.size()), sizes.data());
  if (dimensions < 1 || dimensions > static_cast<int>(sizes.size())) return {};
  Coordinates chunk(static_cast<std::size_t>(dimensions), 0);
  for (std::size_t at = 0; at < chunk.size(); ++at) chunk[at] = sizes[at];
  return chunk;
}

Coordinates shape_of(const Hdf5Functions& call, hid_t space) {
  std::array<hsize_t, arrays::kDimensionsMax> sizes{};
  const int dimensions = call.H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  if (dimensions < 1 || dimensions > static_cast<int>(sizes.size())) return {};
  Coordinates shape(static_cast<std::size_t>(dimensions), 0);
  for (std::size_t at = 0; at < shape.size(); ++at) shape[at] = sizes[at];
  return shape;
}

std::optional<ChunkRoom> room_wanted(const OpenFile& file, const DatasetCreation& dataset) {
  const Hdf5Functions& call = file.library.call;
  const Coordinates chunk = chunk_of(call, dataset.creation);
  const Coordinates shape = shape_of(call, dataset.space);
  const std::size_t cell_bytes = call.H5Tget_size(dataset.type);
  if (chunk.size() == 0 || chunk.size() != shape.size() || cell_bytes == 0) return std::nullopt;
  if (std::ranges::find(chunk.all(), 0U) != chunk.all().end()) return std::nullopt;
  const auto room = ChunkRoom::of_a_row(shape, chunk, cell_bytes);
  if (!room || room->bytes <= file.chunk_room) return std::nullopt;
  // Parts of a chunk that is larger than the cache are written past it, unless it is packed.
  std::uint64_t chunk_bytes = cell_bytes;
  for (const std::uint64_t cells : chunk.all()) chunk_bytes *= cells;
  if (chunk_bytes < kChunkBytesLeast) return std::nullopt;
  const bool is_written_past =
      chunk_bytes > file.chunk_room && call.H5Pget_nfilters(dataset.creation) <= 0;
  return is_written_past ? std::nullopt : room;
}

}  // namespace

std::optional<ChunkRoom> ChunkRoom::of_a_row(const Coordinates& shape, const Coordinates& chunk,
                                             std::uint64_t cell_bytes) {
  CAIRN_CHECK(shape.size() == chunk.size() && shape.size() != 0);
  ChunkRoom room{cell_bytes, 1};
  for (std::size_t at = 0; at < shape.size(); ++at) {
    CAIRN_CHECK(chunk[at] != 0);
    // HDF5's place of a chunk has a few bits for its number in each dimension.
    const std::uint64_t cells = at == 0 ? 1 : std::max<std::uint64_t>(shape[at], 1);
    const std::uint64_t chunks = (cells - 1) / chunk[at] + 1;
    if (chunk[at] > kRowBytesMost || chunks > kPlacesMost) return std::nullopt;
    room.bytes *= chunk[at];
    if (room.bytes > kRowBytesMost) return std::nullopt;
    room.bytes *= chunks;
    room.places *= std::bit_ceil(chunks + 1);
    if (room.bytes > kRowBytesMost || room.places > kPlacesMost) return std::nullopt;
  }
  return room;
}

std::uint64_t default_chunk_room(const Library& library, hid_t file_access) {
  constexpr std::array<std::size_t, 2> kDefaults{std::size_t{1} << 20, std::size_t{8} << 20};
  const KeptErrors kept(library.call);
  std::size_t bytes = 0;
  if (!get_size(library.call, file_access, kCacheBytes, &bytes)) return 0;
  const bool is_default = std::find(kDefaults.begin(), kDefaults.end(), bytes) != kDefaults.end();
  return is_default ? bytes : 0;
}

RoomyAccess::RoomyAccess(const OpenFile& file, const DatasetCreation& dataset)
    : file_(file), access_(dataset.access) {
  if (file.chunk_room == 0 || !file.is_native) return;
  const Hdf5Functions& call = file.library.call;
  const KeptErrors kept(call);
  std::size_t chosen = 0;
  if (!get_size(call, access_, kCacheBytes, &chosen) || chosen != kOfTheFile) return;
  const auto room = room_wanted(file, dataset);
  if (!room) return;
  if (given.fetch_add(room->bytes) + room->bytes > kAllMost) {
    given.fetch_sub(room->bytes);
    return;
  }
  bytes_ = room->bytes;
  const auto bytes = static_cast<std::size_t>(room->bytes);
  std::size_t places = 0;
  own_ = call.H5Pcopy(access_);
  bool is_set = own_ >= 0 && call.H5Pset(own_, kCacheBytes, &bytes) >= 0 &&
                get_size(call, own_, kCachePlaces, &places);
  const auto wanted = static_cast<std::size_t>(room->places);
  // Those of the file are enough for some hundreds of chunks.
  if (is_set && places == kOfTheFile && wanted > kPlacesOfAFile)
    is_set = call.H5Pset(own_, kCachePlaces, &wanted) >= 0;
  if (is_set || own_ < 0) return;
  call.H5Pclose(own_);
  own_ = H5I_INVALID_HID;
}

RoomyAccess::~RoomyAccess() {
  if (own_ >= 0) {
    const KeptErrors kept(file_.library.call);
    file_.library.call.H5Pclose(own_);
  }
  given.fetch_sub(bytes_);
}

void give_back_chunk_room(std::uint64_t bytes) { given.fetch_sub(bytes); }

}  // namespace cairn::hdf5
