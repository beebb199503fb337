// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/segment_chain.h"

#include <algorithm>

#include "policy/prefetch/mixed_bits.h"

namespace cairn {
namespace {

constexpr std::uint8_t kSegmentWorthMax = 3;
constexpr unsigned kTimesFollowedMax = 15;

}  // namespace

std::size_t SegmentChain::set_of(std::int64_t first) const {
  const std::size_t sets = nodes_.size() / kWays;
  return (mixed_bits(static_cast<std::uint64_t>(first)) & (sets - 1)) * kWays;
}

const SegmentChain::Node* SegmentChain::find(std::int64_t first) const {
  if (nodes_.empty()) return nullptr;
  const Node* set = &nodes_[set_of(first)];
  for (unsigned way = 0; way < kWays; ++way) {
    if (set[way].segment.first == first) return &set[way];
  }
  return nullptr;
}

bool SegmentChain::grow() {
  const std::size_t before = nodes_.size();
  const std::size_t after = before == 0 ? kSegmentsFirst : 2 * before;
  if (after > segments_max_ || !budget_.reserve((after - before) * sizeof(Node))) return false;
  std::vector<Node> old(after);
  old.swap(nodes_);
  used_ = 0;
  for (const Node& node : old) {
    if (node.segment.first < 0) continue;
    // A set is split in two, so that there is room for whatever was in it.
    *find_or_replace(node.segment.first) = node;
  }
  return true;
}

// A path through the chain ends where a segment is missing, so that losing one in thirty costs a
// third of what is foreseen: sets are given more room as soon as one is full, unless hardly any of
// the others has anything in it.
bool SegmentChain::make_room_for(std::int64_t first) {
  for (;;) {
    const Node* set = nodes_.empty() ? nullptr : &nodes_[set_of(first)];
    for (unsigned way = 0; set != nullptr && way < kWays; ++way) {
      if (set[way].segment.first == first || set[way].segment.first < 0) return true;
    }
    if (4 * std::size_t{used_} < nodes_.size() || !grow()) return !nodes_.empty();
  }
}

SegmentChain::Node* SegmentChain::find_or_replace(std::int64_t first) {
  Node* set = &nodes_[set_of(first)];
  Node* least = set;
  for (unsigned way = 0; way < kWays; ++way) {
    Node& node = set[way];
    if (node.segment.first == first) {
      if (node.worth < kSegmentWorthMax) ++node.worth;
      return &node;
    }
    if (least->segment.first < 0) continue;
    if (node.segment.first < 0 || node.worth < least->worth) least = &node;
  }
  if (least->segment.first < 0) ++used_;
  if (least->worth != 0) {
    for (unsigned way = 0; way < kWays; ++way) --set[way].worth;
  }
  *least = Node{};
  least->segment.first = first;
  return least;
}

void SegmentChain::count_follower(Node& node, std::int32_t distance) {
  unsigned follower = 0;
  for (unsigned at = 0; at < kFollowers; ++at) {
    if (node.times[at] != 0 && node.distance[at] == distance) {
      follower = at;
      break;
    }
    if (node.times[at] < node.times[follower]) follower = at;
  }
  if (node.times[follower] != 0 && node.distance[follower] != distance) {
    // All are taken by others: the rarest loses until its place is free.
    --node.times[follower];
    return;
  }
  if (node.times[follower] == kTimesFollowedMax) {
    for (std::uint8_t& times : node.times) times /= 2;
  }
  node.distance[follower] = distance;
  ++node.times[follower];
}

void SegmentChain::learn(const Segment& segment, std::int64_t next) {
  const std::int64_t distance = next - segment.first;
  if (distance != static_cast<std::int32_t>(distance)) return;
  if (!make_room_for(segment.first)) return;
  Node* node = find_or_replace(segment.first);
  node->segment = segment;
  count_follower(*node, static_cast<std::int32_t>(distance));
}

SegmentChain::Segment SegmentChain::segment_at(std::int64_t first) const {
  const Node* node = find(first);
  return node == nullptr ? Segment{} : node->segment;
}

SegmentChain::Follower SegmentChain::likely_after(std::int64_t first) const {
  const Node* node = find(first);
  if (node == nullptr) return Follower{};
  const auto most = std::max_element(node->times.begin(), node->times.end());
  unsigned sum = 0;
  for (const std::uint8_t times : node->times) sum += times;
  if (sum == 0) return Follower{};
  const auto follower = static_cast<std::size_t>(most - node->times.begin());
  return Follower{first + node->distance[follower],
                  static_cast<float>(*most) / static_cast<float>(sum)};
}

}  // namespace cairn
