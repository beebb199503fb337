// SPDX-License-Identifier: Apache-2.0
// What of a dataset makes its chunks worth keeping, and a place for them.
//
// A chunk of the cache is a chunk of the file, unpacked: HDF5 unpacks the whole of it, whatever
// part is read. Datasets without filters are not kept: their bytes are in the tiers as those of the
// file, and to copy them from there costs no more.
//
// Thread safety: as open_file.h. Ownership: holds ids of its library.
#pragma once

#include <optional>

#include "frontends/hdf5/object.h"
#include "policy/arrays/chunk_grid.h"

namespace cairn::hdf5 {

class Array final : public Memory {
 public:
  // None where the dataset's reads are HDF5's own.
  static Array* look_at(Dataset& dataset, hid_t transfer);
  ~Array() override;

  hid_t type() const { return type_; }
  std::size_t cell_bytes() const { return cell_bytes_; }
  const arrays::ChunkGrid& grid() const { return *grid_; }
  std::uint64_t bytes_of(const arrays::Box& box) const { return *box.cells() * cell_bytes_; }

  // What reading chunks costs, as far as this process has seen it.
  void note_unpacked(std::uint64_t bytes, double seconds);
  // Whether a chunk in the tiers would be had sooner.
  bool is_worth_keeping() const;

 private:
  explicit Array(Library& library) : library_(library) {}
  bool look_at_layout(hid_t creation);
  bool look_at_type();
  bool look_at_space();

  Library& library_;
  hid_t type_ = H5I_INVALID_HID;
  hid_t space_ = H5I_INVALID_HID;
  std::size_t cell_bytes_ = 0;
  arrays::Coordinates shape_;
  arrays::Coordinates chunk_;
  std::optional<arrays::ChunkGrid> grid_;
  std::uint64_t unpacked_bytes_ = 0;
  double unpacked_seconds_ = 0;
};

}  // namespace cairn::hdf5
