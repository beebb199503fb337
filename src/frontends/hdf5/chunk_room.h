// SPDX-License-Identifier: Apache-2.0
// Room for the chunks of a dataset that is created, in HDF5's own cache of them.
//
// A program that writes a chunked dataset row by row comes back to each chunk as often as it has
// rows. HDF5 keeps the chunks of a row meanwhile if they fit in its cache (8 MiB for a dataset, a
// MiB before HDF5 2.0). If not, each row costs a read and a write of whole chunks, and where they
// are packed, their packing as well: 64 MiB in chunks of 1024 x 1024 floats move a thousand times.
// So a dataset whose row of chunks is larger than the cache gets a cache for one row, unless the
// program has chosen for itself. What HDF5 holds there is written when the dataset or the file is
// closed or flushed, as ever.
//
// Thread safety: as open_file.h. Units: bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "frontends/hdf5/open_file.h"
#include "policy/arrays/coordinates.h"

namespace cairn::hdf5 {

// What a cache has to hold, and in how many places, so that no two chunks of a row want the same.
struct ChunkRoom {
  std::uint64_t bytes = 0;
  std::uint64_t places = 0;

  // For the chunks that lie side by side in all dimensions but the first. None where they are too
  // many or too large to be worth it. Requires: as many dimensions, no chunk of 0 cells.
  static std::optional<ChunkRoom> of_a_row(const arrays::Coordinates& shape,
                                           const arrays::Coordinates& chunk,
                                           std::uint64_t cell_bytes);
};

// The properties of H5Dcreate() that say what the dataset is, and the program's for its access.
struct DatasetCreation {
  hid_t type;
  hid_t space;
  hid_t creation;
  hid_t access;
};

// The access properties for one creation: the program's, or a copy with more room.
class RoomyAccess {
 public:
  // All datasets of a process that are open have so much more than HDF5 gives them, at most.
  static constexpr std::uint64_t kAllMost = std::uint64_t{256} << 20;

  RoomyAccess(const OpenFile& file, const DatasetCreation& dataset);
  ~RoomyAccess();
  RoomyAccess(const RoomyAccess&) = delete;
  RoomyAccess& operator=(const RoomyAccess&) = delete;

  hid_t get() const { return own_ < 0 ? access_ : own_; }
  // The dataset was created so: what of its room it gives back when it is closed, in bytes.
  std::uint64_t take() { return std::exchange(bytes_, 0); }

 private:
  const OpenFile& file_;
  hid_t access_;
  hid_t own_ = H5I_INVALID_HID;
  std::uint64_t bytes_ = 0;
};

void give_back_chunk_room(std::uint64_t bytes);

// What HDF5 gives each dataset of a file that is opened with these properties. 0 where the program
// has chosen it, or it is not known.
std::uint64_t default_chunk_room(const Library& library, hid_t file_access);

}  // namespace cairn::hdf5
