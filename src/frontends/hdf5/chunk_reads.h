// SPDX-License-Identifier: Apache-2.0
// One chunk of a dataset: from the tiers, or else unpacked by HDF5 and kept there.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/array.h"
#include "frontends/hdf5/dataset_read.h"
#include "frontends/hdf5/regions.h"

namespace cairn::hdf5 {

class ChunkReads {
 public:
  // Borrows all. `box`: the cells that the read wants, which lie in its buffer without gaps.
  ChunkReads(Dataset& dataset, Array& array, const DatasetRead& read, const arrays::Box& box);

  // Fills the buffer's cells of that chunk. False where HDF5 has to do it.
  bool read_chunk(std::uint64_t number);

 private:
  CairnRegion region_of(std::uint64_t number) const;
  // 0 or -errno.
  int copy_from_tiers(const CairnRegion& region, const arrays::Box& chunk,
                      const arrays::Box& wanted) const;
  // The connector below fills `to` with the cells of the box.
  bool unpack(const arrays::Box& box, void* to);
  void keep(std::uint64_t number, const CairnRegion& region, const void* cells);

  Dataset& dataset_;
  Array& array_;
  const DatasetRead& read_;
  const arrays::Box& box_;
  const RegionCalls& calls_;
};

}  // namespace cairn::hdf5
