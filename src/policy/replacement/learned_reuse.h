// SPDX-License-Identifier: Apache-2.0
// learned: the page whose place is worth least leaves, by a learned estimate of when pages are used
// again (policy/replacement/reuse_times.h). Loops, scans, single uses and popularity need no names:
// each is a shape of the distribution.
//
// It learns from all references, also those to pages that left. It remembers such pages for 64
// times the capacity in references, so that learning does not depend on eviction. A victim is the
// lowest of both ends of each class's list by recency, and of 32 pages drawn at random.
//
// Thread safety: none. Two experts of one seed agree.
#pragma once

#include "base/random_source.h"
#include "policy/replacement/page_lists.h"
#include "policy/replacement/page_pool.h"
#include "policy/replacement/reuse_times.h"

namespace cairn {

class LearnedReuse final : public Expert {
 public:
  struct Options {
    std::uint32_t remembered_capacities = 64;  // pages that left are remembered for so long
    std::uint32_t learn_from_one_in = 1;       // pages: a power of two; large tiers sample
    std::uint64_t seed = 1;
  };
  explicit LearnedReuse(std::uint32_t capacity) : LearnedReuse(capacity, Options()) {}
  LearnedReuse(std::uint32_t capacity, const Options& options);

  const char* name() const override { return "learned"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return held_.holds(page); }
  bool remembers(PageId page) const override {
    return at_page_or(histories_, page, History{}).times_seen != 0;
  }
  void forget(PageId page) override;

 private:
  static constexpr unsigned kDrawn = 32;
  struct History {
    std::uint64_t last = 0;
    std::uint32_t times_seen = 0;  // 0: not remembered
    std::uint16_t page_class = 0;
  };
  bool is_sampled(PageId page) const;
  void note(PageId page, History& history);
  void learn();
  void evict();

  const Options options_;
  const std::uint64_t remembered_;  // references
  ReuseTimes times_;
  std::vector<History> histories_;
  PagePool held_;
  PageLists by_class_{ReuseTimes::kClasses};  // of the pages held, the last used at the front
  RandomSource random_;
  std::uint64_t now_ = 0;
  std::uint64_t learns_at_ = kLearnsFirst;
  static constexpr std::uint64_t kLearnsFirst = 256;
};

}  // namespace cairn
