// SPDX-License-Identifier: Apache-2.0
// Which segment of a file is read after which: a Markov chain of first order (Joseph, Grunwald:
// "Prefetching using Markov predictors", ISCA 1997). A segment is a stretch read without a jump.
// Its first block names it; the chain knows its length and the segments that followed.
//
// Bounds: segments_max of 32 bytes, and the budget; a full set replaces a segment that was not seen
// again.
//
// Thread safety: none. Ownership: borrows the budget.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policy/prefetch/knowledge_budget.h"

namespace cairn {

class SegmentChain {
 public:
  struct Segment {
    std::int64_t first = -1;
    std::uint32_t blocks = 0;
    std::uint32_t read_blocks = 1;  // of one read of it
  };
  struct Follower {
    std::int64_t first = -1;
    float share = 0;  // of the times that the segment was left; 0: nothing is known
  };

  // Requires: segments_max is a power of two.
  SegmentChain(KnowledgeBudget& budget, std::uint32_t segments_max)
      : budget_(budget), segments_max_(segments_max) {}
  ~SegmentChain() { budget_.release(nodes_.size() * sizeof(Node)); }
  SegmentChain(const SegmentChain&) = delete;
  SegmentChain& operator=(const SegmentChain&) = delete;

  // The segment was read, and then one that begins at `next`.
  void learn(const Segment& segment, std::int64_t next);
  // The segment that begins there; no blocks when nothing is known of it.
  Segment segment_at(std::int64_t first) const;
  Follower likely_after(std::int64_t first) const;

 private:
  static constexpr unsigned kFollowers = 3;
  static constexpr std::uint32_t kWays = 4;
  static constexpr std::uint32_t kSegmentsFirst = 64;
  struct Node {
    Segment segment;
    std::array<std::int32_t, kFollowers> distance{};  // to the follower's first block
    std::array<std::uint8_t, kFollowers> times{};     // 0: no such follower
    std::uint8_t worth = 0;                           // 0 is replaced first
  };
  static_assert(sizeof(Node) == 32, "what segments_max bounds");

  std::size_t set_of(std::int64_t first) const;
  const Node* find(std::int64_t first) const;
  // Whether there is a node that it can have.
  bool make_room_for(std::int64_t first);
  Node* find_or_replace(std::int64_t first);
  bool grow();
  static void count_follower(Node& node, std::int32_t distance);

  KnowledgeBudget& budget_;
  const std::uint32_t segments_max_;
  std::vector<Node> nodes_;
  std::uint32_t used_ = 0;
};

}  // namespace cairn
