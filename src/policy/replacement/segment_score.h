// SPDX-License-Identifier: Apache-2.0
// segment-score: the page of the lowest score leaves, where the score of a page that was referenced
// at t_1 .. t_n is, at time t, the sum over i of (1/p)^((t - t_i) / n), p = 2 (Kougkas, Devarajan,
// Sun: JCST 35(1), 2020, equation 1). Time is counted in steps of a 64th of the capacity in
// references: the paper leaves the step open, and with longer ones the score is far below lru.
//
// The sum runs over the last 16 references, and a victim is the lowest of 64 pages drawn at random.
//
// Thread safety: none. Two experts of one seed agree.
#pragma once

#include <array>

#include "base/random_source.h"
#include "policy/replacement/page_pool.h"

namespace cairn {

class SegmentScore final : public Expert {
 public:
  explicit SegmentScore(std::uint32_t capacity, std::uint64_t seed = 1);

  const char* name() const override { return "segment-score"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return pages_.holds(page); }
  void forget(PageId page) override;

 private:
  static constexpr unsigned kReferencesMax = 16;
  static constexpr unsigned kDrawn = 64;
  static constexpr std::uint32_t kStepsPerCapacity = 64;
  struct History {
    std::array<std::uint64_t, kReferencesMax> times{};
    std::uint32_t count = 0;
  };
  // Its logarithm: scores may be smaller than any number.
  double log_score(PageId page) const;

  const double step_;
  PagePool pages_;
  std::vector<History> histories_;  // of the pages held
  RandomSource random_;
  std::uint64_t now_ = 0;
};

}  // namespace cairn
