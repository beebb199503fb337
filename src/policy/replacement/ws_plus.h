// SPDX-License-Identifier: Apache-2.0
// ws-plus: weight sharing that knows what each expert would have missed. Every expert keeps a
// directory of its own, and the cache follows one of them, the leader, lazily: the victim is a page
// that the leader does not hold. There is always such a page when the cache must evict.
//
// Another expert becomes the leader when the change is paid for. For each expert
//   advantage   how many more misses the leader has had, since that sum last stood at zero
//   distance    pages that the expert holds and the cache does not: what the change may cost
// and the leader changes to the expert with the largest advantage - price * distance - 8, once that
// is above zero. The price begins at 0.5. It doubles, to 16 at most, when the cache has missed more
// since a change than the leader before would have, and falls by a fifth otherwise. An equal
// advantage pays for each change: the work-function pattern of metrical task systems (Borodin,
// Linial, Saks: "An optimal on-line algorithm for metrical task system", J. ACM 39(4), 1992),
// without a proof.
//
// Thread safety: none. Ownership: its experts.
#pragma once

#include <deque>
#include <memory>

#include "policy/replacement/page_lists.h"

namespace cairn {

class WsPlus final : public Expert {
 public:
  // The default experts: learned, s3-fifo, lirs, lru; the first leads until another one is better.
  explicit WsPlus(std::uint32_t capacity);
  // Requires: at least one expert, all of `capacity`.
  WsPlus(std::uint32_t capacity, std::vector<std::unique_ptr<Expert>> experts);

  const char* name() const override { return "ws-plus"; }
  const char* followed() const override { return leader().name(); }
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return held_.is_on_any(page); }
  bool remembers(PageId page) const override;
  void forget(PageId page) override;

  const Expert& leader() const { return *followed_[leader_].expert; }
  std::uint64_t changes() const { return changes_; }

 private:
  static constexpr double kPriceMin = 0.5;
  static constexpr double kPriceMax = 16;
  static constexpr double kSlack = 8;
  struct Followed {
    std::unique_ptr<Expert> expert;
    double advantage = 0;
    std::int64_t distance = 0;
    std::uint64_t misses = 0;
    bool is_hit = false;  // the reference under way
  };
  // The figures to compare when the leader changes again.
  struct Stay {
    std::size_t leader_before = 0;
    std::uint64_t misses_before = 0;  // of that one
    std::uint64_t cache_misses = 0;
    bool is_set = false;
  };
  void tell_experts(PageId page);
  void take_in(PageId page);
  PageId next_victim();
  PageId next_candidate();
  void collect_candidates();
  void consider_change();
  void change_leader(std::size_t leader);

  std::vector<Followed> followed_;
  std::size_t leader_ = 0;
  PageLists held_{1};  // by recency
  // Pages that the leader does not hold, the next victim first; some may be held again.
  std::deque<PageId> candidates_;
  double price_ = kPriceMin;
  Stay stay_;
  std::uint64_t misses_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace cairn
