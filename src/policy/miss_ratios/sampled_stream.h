// SPDX-License-Identifier: Apache-2.0
// The references of a stream to a sample of its pages, in their order: what miniature simulations
// run on (policy/miss_ratios/expert_curves.h). With limits that the stream does not reach it is the
// whole stream, and simulations of it are exact.
//
// The sample is that of SampledPages with the same seed, unless there are too many references: then
// it becomes smaller, down to a quarter of the pages that it may have. After that the recording
// ends, and the sample is one of the stream's beginning.
//
// Cost: a few nanoseconds for a reference that is not sampled. Thread safety: none. Ownership: at
// most sixteen bytes for each reference that it may keep, and 60 for each page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/miss_ratios/page_table.h"
#include "policy/miss_ratios/spatial_sample.h"
#include "policy/replacement/expert.h"

namespace cairn {

struct SampledStreamLimits {
  std::size_t pages_max = 10'000;
  std::size_t references_max = std::size_t{1} << 20;  // less than 2^31
  std::uint64_t seed = 0;

  // For a recorded stream of which every reference counts.
  static SampledStreamLimits everything() { return {SIZE_MAX, (std::size_t{1} << 31) - 1, 0}; }
};

class SampledStream {
 public:
  // Requires: limits that are not 0.
  explicit SampledStream(const SampledStreamLimits& limits = {});

  void reference(std::uint64_t key) {
    if (is_full_) return;
    ++references_;
    const std::uint64_t hash = sample_.hash_of(key);
    if (sample_.takes(hash)) reference_sampled(hash);
  }

  // Whether the recording has ended before the stream.
  bool is_full() const { return is_full_; }
  // The references of the stream while it was recorded, sampled or not.
  std::uint64_t references() const { return references_; }
  std::size_t sampled_references() const { return kept_.size() - dropped_references_; }
  std::size_t sampled_pages() const { return pages_.size(); }
  double rate() const { return sample_.rate(); }
  // The sampled references, with pages numbered from 0 on without gaps.
  std::vector<PageId> numbered_pages() const;
  std::size_t memory_bytes() const;

 private:
  void reference_sampled(std::uint64_t hash);
  void make_room();
  void drop_highest();
  void remove_dropped();

  const SampledStreamLimits limits_;
  SpatialSample sample_;
  PageTable pages_;                  // by hashes; the value is the page's number
  std::vector<std::uint32_t> kept_;  // the numbers of the pages, dropped ones among them
  std::vector<bool> is_dropped_;     // by number
  std::size_t dropped_references_ = 0;
  std::uint64_t references_ = 0;
  bool is_full_ = false;
};

}  // namespace cairn
