// SPDX-License-Identifier: Apache-2.0
// The miss-ratio curve of LRU of a stream, estimated live from a sample of its pages in constant
// memory: SHARDS of fixed size, with the correction SHARDS-adj (Waldspurger, Park, Garthwaite,
// Ahmad: "Efficient MRC construction with SHARDS", FAST 2015, sections 4.2 to 4.4).
//
// - A distance in a sample of rate R is 1/R times as long in the stream. That holds on average, so
//   a sampled distance d counts as one between (d - 1)/R and d/R, spread evenly.
// - A reference that is sampled at rate R counts 1/R times. That is the paper's rescaling of all
//   counts when the rate falls, without touching them.
// - The curve counts misses (policy/miss_ratios/distance_counts.h), which is SHARDS-adj. Without
//   it, a hot page that is in the sample, or that is not, would spoil the curve.
//
// While the stream has no more pages than the sample may have, the curve is exact but for the
// buckets of the distances, which are at most 0.8 % wide.
//
// Errors: measured in docs/models.md, "Miss ratios". Cost: a few nanoseconds for a reference that
// is not sampled. Thread safety: none. Ownership: 40 to 70 bytes for each page of the sample, and
// at most 80 KB.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/miss_ratios/distance_counts.h"
#include "policy/miss_ratios/hot_set.h"
#include "policy/miss_ratios/miss_ratio_curve.h"
#include "policy/miss_ratios/spatial_sample.h"
#include "policy/miss_ratios/stack_distances.h"

namespace cairn {

class SampledPages {
 public:
  static constexpr std::size_t kPagesMaxDefault = 10'000;

  // Requires: sampled_pages_max > 0.
  explicit SampledPages(std::size_t sampled_pages_max = kPagesMaxDefault, std::uint64_t seed = 0)
      : sample_(sampled_pages_max, seed) {}

  void reference(std::uint64_t key) {
    ++references_;
    const std::uint64_t hash = sample_.hash_of(key);
    if (sample_.takes(hash)) reference_sampled(hash, true);
  }
  // A use that is in the cache as any other, but that is in no count: the curve is of the
  // references among the uses, such as the reads among reads and writes.
  void touch(std::uint64_t key) {
    const std::uint64_t hash = sample_.hash_of(key);
    if (sample_.takes(hash)) reference_sampled(hash, false);
  }

  std::uint64_t references() const { return references_; }
  // How many pages the stream had, estimated; those that were touched first are not among them.
  double pages() const { return counts_.cold(); }
  std::size_t sampled_pages() const { return sample_.size(); }
  // The share of the pages that are in the sample; 1: all of them.
  double rate() const { return sample_.rate(); }
  // The curve of all references so far.
  MissRatioCurve curve() const { return counts_.curve(static_cast<double>(references_)); }
  // The fewest pages that take this share of the references. The pages of the sample have been in
  // it since their first reference, so their counts are whole.
  double hot_set_pages(double share = kHotShare) const {
    return cairn::hot_set_pages(distances_.all_uses(), sample_.weight(),
                                static_cast<double>(references_), share);
  }
  std::size_t memory_bytes() const {
    return sample_.memory_bytes() + distances_.memory_bytes() + counts_.memory_bytes();
  }

 private:
  static constexpr unsigned kBucketBits = 8;

  void reference_sampled(std::uint64_t hash, bool counts);
  // The distance in the stream that a distance in the sample stands for.
  std::uint64_t scaled(std::uint64_t distance);

  SpatialSample sample_;
  StackDistances distances_;  // by hashes, of the sample only
  DistanceCounts counts_{kBucketBits};
  std::uint64_t references_ = 0;
  std::uint32_t spread_ = 0;  // what has been added to the last distance, in parts of 2^32
};

}  // namespace cairn
