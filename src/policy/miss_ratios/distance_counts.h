// SPDX-License-Identifier: Apache-2.0
// How many references had which stack distance, and the miss-ratio curve that follows. References
// have weights, because one of a sample stands for several. Distances up to 2^bits have a bucket
// each; of longer ones, each doubling has 2^bits / 2 equal buckets, so that a bucket is at most
// 2^(1 - bits) of its distance wide.
//
// Thread safety: none. Ownership: eight bytes for each bucket up to the longest distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/miss_ratios/miss_ratio_curve.h"

namespace cairn {

class DistanceCounts {
 public:
  // With so many, each distance has a bucket of its own.
  static constexpr unsigned kBitsExact = 40;
  static constexpr std::uint64_t kDistanceMax = (std::uint64_t{1} << kBitsExact) - 1;

  // Requires: 1 <= bits <= kBitsExact.
  explicit DistanceCounts(unsigned bits);

  // A longer distance than kDistanceMax counts as that. Requires: distance > 0.
  void add(std::uint64_t distance, double weight);
  // The first reference to a page, which misses in every cache.
  void add_cold(double weight) { cold_ += weight; }

  double cold() const { return cold_; }
  // The curve of a stream of so many references. It counts misses: references that the weights do
  // not account for (or that they have too many of) are hits of the shortest distance (SHARDS-adj;
  // Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015).
  MissRatioCurve curve(double references) const;

  std::size_t memory_bytes() const { return weights_.capacity() * sizeof(double); }

 private:
  std::size_t bucket_of(std::uint64_t distance) const;
  // The longest distance that is in the bucket.
  std::uint64_t top_of(std::size_t bucket) const;

  const unsigned bits_;
  std::vector<double> weights_;
  std::uint64_t longest_ = 0;  // of all distances: a cache of so many pages has every hit
  double cold_ = 0;
};

}  // namespace cairn
