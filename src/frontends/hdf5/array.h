// SPDX-License-Identifier: Apache-2.0
// What of a dataset makes its reads worth a look, and what they have taught.
//
// A dataset with filters is kept unpacked: a chunk of the cache is a chunk of the file, because
// HDF5 unpacks the whole of it, whatever part is read. The bytes of one without filters are in the
// tiers as those of the file, and to copy them from there costs no more. Where they lie row after
// row, what follows a read is brought in while the program computes.
//
// Thread safety: as open_file.h. Ownership: holds ids of its library.
#pragma once

#include <deque>
#include <optional>

#include "frontends/hdf5/object.h"
#include "policy/arrays/chunk_grid.h"
#include "policy/arrays/dataset_news.h"
#include "policy/arrays/file_array.h"
#include "policy/arrays/keeping_worth.h"
#include "policy/arrays/packed_array.h"
#include "policy/arrays/slab_ahead.h"

namespace cairn::hdf5 {

class Array final : public Memory {
 public:
  // None where the dataset's reads are HDF5's own and nothing can be done for them.
  static Array* look_at(Dataset& dataset, hid_t transfer);
  ~Array() override;

  const arrays::Coordinates& shape() const { return shape_; }
  // Whether its chunks are kept. All that follows is of such arrays.
  bool is_packed() const { return grid_.has_value(); }

  // For the others: where their cells lie in the file.
  const arrays::FileArray& in_file() const { return in_file_; }
  // The program is about to read that box. Returns: the bytes of the file to bring in, if any.
  std::optional<arrays::ByteRun> follow(const arrays::Box& box);
  // The same of a selection with steps.
  std::optional<arrays::ByteRun> follow(const arrays::Hyperslab& selection);
  // HDF5 is about to read that. Returns: the bytes of the file that it needs for that, and would
  // read in small pieces; of no length where there are none such.
  arrays::ByteRun needed_now(const arrays::Box& box) const;
  arrays::ByteRun needed_now(const arrays::Hyperslab& selection) const;
  // The box that the connector below is reading, if the node is to hear of it.
  std::optional<arrays::Box> under_way;
  // Boxes that were read as regions, of which the node had no time to hear yet.
  std::deque<arrays::Box> untold;
  // Chunks that parts were read of, as the node has heard, the latest last.
  std::deque<std::uint64_t> told_chunks;

  // What it takes to unpack chunks without HDF5, if the filters are plain ones.
  const arrays::PackedArray* packed() const { return packed_ ? &*packed_ : nullptr; }
  // The chunks that the read before was in, of which the node has heard.
  std::optional<arrays::Box> told_places;
  // How often the table of chunks was made for the node.
  unsigned tables_made = 0;

  hid_t type() const { return type_; }
  std::size_t cell_bytes() const { return cell_bytes_; }
  const arrays::ChunkGrid& grid() const { return *grid_; }
  std::uint64_t bytes_of(const arrays::Box& box) const { return *box.cells() * cell_bytes_; }

  // Whether to keep its chunks, as far as this process has seen.
  arrays::KeepingWorth keeping;

 private:
  explicit Array(Library& library) : library_(library) {}
  // Returns: false.
  bool is_unfit(arrays::LeftReason why);
  bool look_at_layout(hid_t creation);
  bool look_at_type();
  bool look_at_space();
  bool look_at_grid();
  void look_at_filters(hid_t creation, const Dataset& dataset);
  bool look_at_rows(const Dataset& dataset, hid_t transfer);
  arrays::ByteRun in_the_file(arrays::ByteRun run) const;

  Library& library_;
  arrays::LeftReason unfit_ = arrays::LeftReason::kShape;
  hid_t type_ = H5I_INVALID_HID;
  hid_t space_ = H5I_INVALID_HID;
  std::size_t cell_bytes_ = 0;
  arrays::Coordinates shape_;
  arrays::Coordinates chunk_;
  bool is_contiguous_ = false;
  std::optional<arrays::ChunkGrid> grid_;
  std::optional<arrays::PackedArray> packed_;
  std::optional<arrays::SlabAhead> ahead_;
  arrays::FileArray in_file_;
};

}  // namespace cairn::hdf5
