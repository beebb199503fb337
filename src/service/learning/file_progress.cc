// SPDX-License-Identifier: Apache-2.0
#include "service/learning/file_progress.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {
namespace {

// And among so many that were passed over.
constexpr std::size_t kBehind = 1024;
// A program that opens a file twice does so soon; in a small set, a file that was opened once soon
// is of another epoch.
constexpr std::size_t kLately = 64;
// A loader may leave out what fills no batch.
constexpr std::size_t kLastFew = 4;
// An epoch that is nearly done has ended when one of the first of the next one is opened.
constexpr std::size_t kFirstOfNext = 32;
// A file that is not found weighs as much as two that are. After so many in a row it is looked
// whether they begin another epoch.
constexpr unsigned kWeightNotFound = 2;
constexpr unsigned kNotFoundBeforeOther = 8 * kWeightNotFound;
// So many in a row that are not where the order has them make it doubtful.
constexpr unsigned kNotFoundMax = 64 * kWeightNotFound;
constexpr std::size_t kOpensJudged = 128;
// For a small set every order is as good as any other: all of it is opened soon.
constexpr std::size_t kItemsJudgedMin = 64;

}  // namespace

FileProgress::Place FileProgress::find(EpochOrder& order, std::uint32_t item) {
  const Place here = find_here(item);
  return here.distance != SIZE_MAX ? here : find_in_next(order, item);
}

FileProgress::Place FileProgress::find_here(std::uint32_t item) const {
  CAIRN_CHECK(at_ <= items_.size());
  const std::size_t end = std::min(at_ + kAhead, items_.size());
  for (std::size_t place = at_; place < end; ++place) {
    if (items_[place] == item) return {false, place, place - at_};
  }
  for (std::size_t place = at_ - std::min(at_, kBehind); place < at_; ++place) {
    if (items_[place] == item && !was_opened_[place]) return {false, place, at_ - place};
  }
  return {};
}

// A program that opens a file twice is not at the next epoch yet, unless this epoch is over and the
// next one begins with that file.
FileProgress::Place FileProgress::find_in_next(EpochOrder& order, std::uint32_t item) {
  const bool is_nearly_done = at_ == items_.size() || opens_ >= items_.size() - items_.size() / 4;
  if (!is_nearly_done) return {};
  const std::vector<std::uint32_t>& first = first_of(order, next_epoch_);
  const std::size_t among = items_.empty() ? kAhead : kFirstOfNext;
  const auto end = first.begin() + static_cast<std::ptrdiff_t>(std::min(among, first.size()));
  const auto found = std::find(first.begin(), end, item);
  if (found == end) return {};
  const bool is_over = at_ + std::max(kLastFew, items_.size() / 16) >= items_.size();
  if (was_opened_lately(item) && !(is_over && found == first.begin())) return {};
  const auto place = static_cast<std::size_t>(found - first.begin());
  return {true, place, place};
}

void FileProgress::go_to(EpochOrder& order, std::uint32_t item, const Place& place) {
  CAIRN_CHECK(place.distance != SIZE_MAX);
  if (place.is_in_next) {
    begin(order, next_epoch_, item);
    not_found_ = 0;
  } else {
    at_ = std::max(at_, place.place + 1);
    mark(place.place);
  }
  note_found(item);
}

bool FileProgress::begins(EpochOrder& order, std::uint32_t item) {
  if (was_opened_lately(item)) {
    last_ = items_.size();  // what comes behind it has been said before
    return true;
  }
  const bool is_other = not_found_ >= kNotFoundBeforeOther;
  if (!is_other) return false;
  if (!begin(order, next_epoch_, item) && !begin_again(order, item)) return false;
  not_found_ = 0;
  note_found(item);
  return true;
}

void FileProgress::note_found(std::uint32_t item) {
  not_found_ -= std::min(not_found_, 1U);
  lately_.resize(std::min(kLately, items_.size() / 4), item);
  if (!lately_.empty()) lately_[found_ % lately_.size()] = item;
  ++found_;
}

void FileProgress::not_found() {
  judge(items_.size());
  not_found_ += kWeightNotFound;
  if (not_found_ >= kNotFoundMax) is_doubted_ = true;
}

void FileProgress::mark(std::size_t place) {
  CAIRN_CHECK(was_opened_.size() == items_.size());
  CAIRN_CHECK(place < items_.size());
  const auto away_from = [place](std::size_t expected) {
    return place > expected ? place - expected : expected - place;
  };
  // Whether those before the first of them were missed or will come is not known.
  judge(std::min(away_from(opens_), away_from(first_ + opens_)));
  was_opened_[place] = true;
  last_ = place;
  ++opens_;
}

void FileProgress::judge(std::size_t away) {
  away_ += away;
  if (++judged_ < kOpensJudged) return;
  if (items_.size() >= kItemsJudgedMin && away_ / judged_ > items_.size() / 4) is_doubted_ = true;
  judged_ = 0;
  away_ = 0;
}

// Another job goes through the epochs that the last one went through, or some of them. A job that
// has kept to the order for a moment only by chance does not begin again for ever.
bool FileProgress::begin_again(EpochOrder& order, std::uint32_t item) {
  const auto enough = std::min<std::uint64_t>(kAhead / 4, order.items_per_epoch());
  if (found_ < enough || !begin(order, 0, item)) return false;
  found_ = 0;
  return true;
}

// Whether the item is among the first kAhead of the epoch.
bool FileProgress::begin(EpochOrder& order, std::uint32_t epoch, std::uint32_t item) {
  const std::vector<std::uint32_t>& first = first_of(order, epoch);
  const auto found = std::find(first.begin(), first.end(), item);
  if (found == first.end()) return false;
  auto items = order.order(epoch);
  if (!items) return false;
  tail_.clear();
  for (std::size_t place = at_ - std::min(at_, kBehind); place < at_; ++place) {
    if (!was_opened_[place]) tail_.push_back(items_[place]);
  }
  first_ = static_cast<std::size_t>(found - first.begin());
  items_ = std::move(*items);
  was_opened_.assign(items_.size(), false);
  next_epoch_ = epoch + 1;
  at_ = first_ + 1;
  opens_ = 0;
  mark(first_);
  return true;
}

// Empty for one that was not declared.
const std::vector<std::uint32_t>& FileProgress::first_of(EpochOrder& order, std::uint32_t epoch) {
  FirstItems& known = epoch == 0 ? of_first_ : of_next_;
  if (known.epoch == epoch) return known.items;
  known.epoch = epoch;
  known.items.clear();
  auto items = order.order(epoch);
  if (!items) return known.items;
  items->resize(std::min(items->size(), kAhead));
  known.items.assign(items->begin(), items->end());
  return known.items;
}

bool FileProgress::was_opened_lately(std::uint32_t item) const {
  return std::find(lately_.begin(), lately_.end(), item) != lately_.end() ||
         std::find(tail_.begin(), tail_.end(), item) != tail_.end();
}

}  // namespace cairn::node
