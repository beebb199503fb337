// SPDX-License-Identifier: Apache-2.0
// The segments of all files, ordered by score, although all scores fade all the time.
//
// The logarithm of a score is a line over time until the next access (FadingScore). Lines of one
// rate keep their order, so segments of one rate stand in one ordered set by level, where time does
// not move them. A query merges the sets of the different rates, each by its score at that time.
// The rate is log p / n, so there are as many sets as different counts of references; if all
// segments have the same n there is one. D different counts take D * D / 2 references at least: a
// thousand sets take half a million.
//
// With N segments and D rates: set and remove take O(log N), or O(D) when the index is full;
// the hottest k take O(D + k log D). Memory: about 130 bytes for each segment, at most kept_max.
//
// Segments of equal score are in the order of their keys.
//
// Thread safety: none. Ownership: keys and scores are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policy/heat/heat_score.h"
#include "policy/heat/segment_key.h"

namespace cairn {

struct RankedSegment {
  SegmentKey key;
  double logarithm = 0;  // of the score, at the time that was asked for

  friend bool operator==(const RankedSegment&, const RankedSegment&) = default;
};

class HeatIndex {
 private:
  using Ordered = std::set<std::pair<double, SegmentKey>>;  // by level

 public:
  enum class Order : std::uint8_t { kHottestFirst, kColdestFirst };

  // Segments one after another. Invalid after the index has changed.
  class Walk {
   public:
    // Nothing when all have been seen.
    std::optional<RankedSegment> next();

   private:
    friend class HeatIndex;
    struct Cursor {
      RankedSegment head;
      const std::pair<const double, Ordered>* set = nullptr;
      Ordered::const_iterator position;  // of the head
    };
    Walk(Order order, double time) : order_(order), time_(time) {}
    bool is_later(const Cursor& one, const Cursor& other) const;
    void push(Cursor cursor);

    Order order_;
    double time_;
    std::vector<Cursor> heap_;
  };

  // Requires: kept_max > 0.
  explicit HeatIndex(std::size_t kept_max) : kept_max_(kept_max) {}

  // A segment, or its new score. Returns: the coldest at `time` if there was one too many, which
  // may be the segment itself. A cold score takes the segment out.
  std::optional<SegmentKey> set(SegmentKey key, const FadingScore& score, double time);
  // Returns: whether it was there.
  bool remove(SegmentKey key);
  // All segments of a file, as when it is closed or its segments are numbered anew. Returns: how
  // many.
  std::size_t remove_object(ObjectIndex object);

  std::optional<FadingScore> find(SegmentKey key) const;
  std::size_t size() const { return scores_.size(); }
  std::size_t rate_count() const { return by_rate_.size(); }

  Walk walk(Order order, double time) const;
  std::vector<RankedSegment> hottest(std::size_t count, double time) const {
    return first(Order::kHottestFirst, count, time);
  }
  std::vector<RankedSegment> coldest(std::size_t count, double time) const {
    return first(Order::kColdestFirst, count, time);
  }

 private:
  using Scores = std::map<SegmentKey, FadingScore>;

  std::vector<RankedSegment> first(Order order, std::size_t count, double time) const;
  void take_out(const SegmentKey& key, const FadingScore& score);
  Scores::iterator erase(Scores::iterator at);

  const std::size_t kept_max_;
  Scores scores_;
  std::map<double, Ordered> by_rate_;
};

}  // namespace cairn
