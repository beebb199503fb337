// SPDX-License-Identifier: Apache-2.0
// A sample of pages by their hash: a page is in the sample, with all of its references, if its hash
// is not above a threshold. The threshold falls so that the sample keeps to its bound, and what
// leaves the sample never comes back (Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC
// construction with SHARDS", FAST 2015, sections 3.1 and 4.2).
//
// The hash is one to one, so it stands for the key. Samples of the same seed agree about pages.
//
// Thread safety: none. Ownership: eight bytes for each page of the sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/random_source.h"

namespace cairn {

class SpatialSample {
 public:
  // Requires: pages_max > 0.
  SpatialSample(std::size_t pages_max, std::uint64_t seed) : pages_max_(pages_max), seed_(seed) {
    CAIRN_CHECK(pages_max > 0);
  }

  std::uint64_t hash_of(std::uint64_t key) const { return RandomSource(key ^ seed_).next(); }
  bool takes(std::uint64_t hash) const { return hash <= threshold_; }

  // A page that the sample takes and has not had before.
  void add(std::uint64_t hash) {
    CAIRN_DCHECK(takes(hash));
    hashes_.push_back(hash);
    std::push_heap(hashes_.begin(), hashes_.end());
  }
  bool is_too_large() const { return hashes_.size() > pages_max_; }
  // Lowers the threshold below the highest hash, whose page leaves. Requires: size() > 1.
  // Returns: that hash.
  std::uint64_t drop_highest() {
    CAIRN_CHECK(hashes_.size() > 1);
    std::pop_heap(hashes_.begin(), hashes_.end());
    const std::uint64_t highest = hashes_.back();
    hashes_.pop_back();
    CAIRN_DCHECK(highest <= threshold_);
    CAIRN_DCHECK(hashes_.front() < highest);
    threshold_ = highest - 1;
    weight_ = std::ldexp(1.0, 64) / (static_cast<double>(threshold_) + 1);
    return highest;
  }

  std::size_t size() const { return hashes_.size(); }
  // The share of all pages that the sample takes.
  double rate() const { return 1 / weight_; }
  // How many pages one of the sample stands for.
  double weight() const { return weight_; }
  std::size_t memory_bytes() const { return hashes_.capacity() * sizeof(std::uint64_t); }

 private:
  const std::size_t pages_max_;
  const std::uint64_t seed_;
  std::uint64_t threshold_ = UINT64_MAX;
  double weight_ = 1;
  std::vector<std::uint64_t> hashes_;  // a heap, the highest first
};

}  // namespace cairn
