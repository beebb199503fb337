// SPDX-License-Identifier: Apache-2.0
// Reads that the ranks of an MPI program do together (ranks.h).
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/dataset_read.h"
#include "frontends/hdf5/object.h"

namespace cairn::hdf5 {

// Whether the read is one that the ranks vote about. All of them, then: that comes before anything
// in which they may differ.
bool is_voted(const OpenFile& file, hid_t transfer);

// The part of one rank in a collective read of one dataset.
class CollectiveRead {
 public:
  // Fills the buffer if that can be done without the connector below, and votes.
  CollectiveRead(Dataset& dataset, const DatasetRead& read);
  ~CollectiveRead();
  CollectiveRead(const CollectiveRead&) = delete;
  CollectiveRead& operator=(const CollectiveRead&) = delete;

  // All ranks have theirs: nobody asks below.
  bool is_over() const { return is_over_; }
  // What to ask below, if others have not theirs: nothing, where this rank has its own.
  const DatasetRead& below() const { return below_; }

 private:
  bool select_nothing(const Dataset& dataset);

  const Hdf5Functions& call_;
  DatasetRead below_;
  hid_t nothing_ = H5I_INVALID_HID;
  bool is_over_ = false;
};

}  // namespace cairn::hdf5
