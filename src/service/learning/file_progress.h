// SPDX-License-Identifier: Apache-2.0
// How far programs have got with a declared order of many files, told by the files that they open.
//
// Nobody opens them exactly in order: workers of a loader take batches in turn and one or the other
// is ahead, a file is opened twice (an image library looks at its head first), an epoch ends early,
// and another job begins again. The search for an opened file looks near the place that the order
// has reached, then among the files that were passed over before it, at the beginning of the next
// epoch, and among the latest opens. An order is doubted when several files in a row are not found,
// or when over kOpensJudged opens the files stood on average further than a quarter of the order
// from their place: an unrelated shuffle would give a third.
//
// Thread safety: none. Memory: some four bytes for each item of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/orders/epoch_order.h"

namespace cairn::node {

class FileProgress {
 public:
  // A file is looked for among so many that come next.
  static constexpr std::size_t kAhead = 256;

  // Where an item that was opened stands, if that is near: in the epoch that is being gone through,
  // or, when that is nearly done, in the next.
  struct Place {
    bool is_in_next = false;
    std::size_t place = 0;
    std::size_t distance = SIZE_MAX;  // from where the opens have got to; SIZE_MAX: it is not near
  };
  Place find(EpochOrder& order, std::uint32_t item);
  // It is the one at `place`, which find() has returned.
  void go_to(EpochOrder& order, std::uint32_t item, const Place& place);
  // It is near in no order: whether it was opened lately, or begins another epoch, which is gone
  // through from here on.
  bool begins(EpochOrder& order, std::uint32_t item);
  // It has its place in no order of the file.
  void not_found();
  // Calls visit(item) for the first `count` behind the one that was opened last, as far as the
  // epoch goes and leaving out what is open or was.
  template <typename Visit>
  void following(std::size_t count, Visit&& visit) const {
    for (std::size_t at = last_ + 1; count != 0 && at < items_.size(); ++at) {
      if (was_opened_[at]) continue;
      visit(items_[at]);
      --count;
    }
  }
  bool is_doubted() const { return is_doubted_; }

 private:
  Place find_here(std::uint32_t item) const;
  Place find_in_next(EpochOrder& order, std::uint32_t item);
  bool begin_again(EpochOrder& order, std::uint32_t item);
  bool begin(EpochOrder& order, std::uint32_t epoch, std::uint32_t item);
  const std::vector<std::uint32_t>& first_of(EpochOrder& order, std::uint32_t epoch);
  bool was_opened_lately(std::uint32_t item) const;
  void note_found(std::uint32_t item);
  void mark(std::size_t place);
  void judge(std::size_t away);

  std::vector<std::uint32_t> items_;   // of the epoch
  std::vector<bool> was_opened_;       // of each of them
  std::vector<std::uint32_t> tail_;    // of the epoch before, what was not opened
  std::vector<std::uint32_t> lately_;  // a ring of those that were opened
  // The first kAhead of two epochs, so that a long order is not drawn for each file that is not
  // found.
  struct FirstItems {
    std::uint32_t epoch = UINT32_MAX;
    std::vector<std::uint32_t> items;
  };
  FirstItems of_first_;
  FirstItems of_next_;
  std::uint32_t next_epoch_ = 0;
  std::size_t at_ = 0;      // behind the furthest that was opened
  std::size_t first_ = 0;   // the first that was
  std::size_t opens_ = 0;   // that found their place in this epoch
  std::size_t last_ = 0;    // the place of the one that was opened last; its end: none
  std::size_t found_ = 0;   // since it was begun
  unsigned not_found_ = 0;  // less those that were
  std::size_t judged_ = 0;  // opens
  std::size_t away_ = 0;    // of their places, all together
  bool is_doubted_ = false;
};

}  // namespace cairn::node
