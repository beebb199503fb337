// SPDX-License-Identifier: Apache-2.0
// Which pages of a segment have been written: a scan of a sparse table leaves out the others, whose
// memory a look at them would allocate.
//
// A page that is written for the first time after the look may be left out; so may one that the
// kernel has swapped out, where the segment's descriptor is closed (SharedSegment::attach()).
//
// Thread safety: immutable after construction. Ownership: borrows the segment.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/arena/shared_segment.h"

namespace cairn::node {

class UsedPages {
 public:
  explicit UsedPages(const SharedSegment& segment);

  // Requires: an address in the segment.
  bool has(const void* address) const;

 private:
  void ask_descriptor(const SharedSegment& segment);
  void ask_mapping(const SharedSegment& segment);

  const std::byte* base_;
  std::vector<bool> pages_;
};

}  // namespace cairn::node
