// SPDX-License-Identifier: Apache-2.0
// The exact miss-ratio curve of LRU of a stream, from every one of its references. For streams that
// are too long, or that nobody has time for, there is policy/miss_ratios/sampled_pages.h.
//
// Thread safety: none. Ownership: 28 to 65 bytes for each page of the stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/miss_ratios/distance_counts.h"
#include "policy/miss_ratios/hot_set.h"
#include "policy/miss_ratios/miss_ratio_curve.h"
#include "policy/miss_ratios/stack_distances.h"

namespace cairn {

class AllPages {
 public:
  void reference(std::uint64_t key) {
    ++references_;
    const std::uint64_t distance = distances_.reference(key);
    if (distance == StackDistances::kCold) {
      counts_.add_cold(1);
    } else {
      counts_.add(distance, 1);
    }
  }

  std::uint64_t references() const { return references_; }
  std::size_t pages() const { return distances_.size(); }
  // The curve of all references so far, exact at every capacity.
  MissRatioCurve curve() const { return counts_.curve(static_cast<double>(references_)); }
  // The fewest pages that take this share of the references.
  double hot_set_pages(double share = kHotShare) const {
    return cairn::hot_set_pages(distances_.all_uses(), 1, static_cast<double>(references_), share);
  }
  std::size_t memory_bytes() const { return distances_.memory_bytes() + counts_.memory_bytes(); }

 private:
  StackDistances distances_;
  DistanceCounts counts_{DistanceCounts::kBitsExact};
  std::uint64_t references_ = 0;
};

}  // namespace cairn
