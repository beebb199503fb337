// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_index.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace cairn {

std::optional<SegmentKey> HeatIndex::set(SegmentKey key, const FadingScore& score, double time) {
  const auto [at, is_new] = scores_.try_emplace(key, score);
  if (!is_new) take_out(key, at->second);
  if (!std::isfinite(score.level)) {
    scores_.erase(at);
    return std::nullopt;
  }
  at->second = score;
  by_rate_[score.rate].emplace(score.level, key);
  if (scores_.size() <= kept_max_) return std::nullopt;
  const SegmentKey coldest = walk(Order::kColdestFirst, time).next()->key;
  remove(coldest);
  return coldest;
}

bool HeatIndex::remove(SegmentKey key) {
  const auto at = scores_.find(key);
  if (at == scores_.end()) return false;
  erase(at);
  return true;
}

std::size_t HeatIndex::remove_object(ObjectIndex object) {
  std::size_t count = 0;
  auto at = scores_.lower_bound({object, 0});
  while (at != scores_.end() && at->first.object == object) {
    at = erase(at);
    ++count;
  }
  return count;
}

std::optional<FadingScore> HeatIndex::find(SegmentKey key) const {
  const auto at = scores_.find(key);
  if (at == scores_.end()) return std::nullopt;
  return at->second;
}

HeatIndex::Scores::iterator HeatIndex::erase(Scores::iterator at) {
  take_out(at->first, at->second);
  return scores_.erase(at);
}

void HeatIndex::take_out(const SegmentKey& key, const FadingScore& score) {
  const auto set = by_rate_.find(score.rate);
  CAIRN_CHECK(set != by_rate_.end());
  set->second.erase({score.level, key});
  if (set->second.empty()) by_rate_.erase(set);
}

HeatIndex::Walk HeatIndex::walk(Order order, double time) const {
  Walk walk(order, time);
  walk.heap_.reserve(by_rate_.size());
  for (const auto& set : by_rate_) {
    const auto head =
        order == Order::kHottestFirst ? std::prev(set.second.end()) : set.second.begin();
    walk.push({{}, &set, head});
  }
  return walk;
}

std::vector<RankedSegment> HeatIndex::first(Order order, std::size_t count, double time) const {
  std::vector<RankedSegment> found;
  found.reserve(std::min(count, size()));
  Walk walk = this->walk(order, time);
  while (found.size() < count) {
    const auto next = walk.next();
    if (!next) break;
    found.push_back(*next);
  }
  return found;
}

bool HeatIndex::Walk::is_later(const Cursor& one, const Cursor& other) const {
  const auto rank = [](const Cursor& cursor) {
    return std::pair(cursor.head.logarithm, cursor.head.key);
  };
  return order_ == Order::kHottestFirst ? rank(one) < rank(other) : rank(other) < rank(one);
}

void HeatIndex::Walk::push(Cursor cursor) {
  const auto& [level, key] = *cursor.position;
  cursor.head = {key, FadingScore{level, cursor.set->first}.logarithm_at(time_)};
  heap_.push_back(cursor);
  std::ranges::push_heap(
      heap_, [this](const Cursor& one, const Cursor& other) { return is_later(one, other); });
}

std::optional<RankedSegment> HeatIndex::Walk::next() {
  if (heap_.empty()) return std::nullopt;
  std::ranges::pop_heap(
      heap_, [this](const Cursor& one, const Cursor& other) { return is_later(one, other); });
  Cursor cursor = heap_.back();
  heap_.pop_back();
  const RankedSegment head = cursor.head;
  const Ordered& set = cursor.set->second;
  if (order_ == Order::kHottestFirst) {
    if (cursor.position == set.begin()) return head;
    --cursor.position;
  } else if (++cursor.position == set.end()) {
    return head;
  }
  push(cursor);
  return head;
}

}  // namespace cairn
