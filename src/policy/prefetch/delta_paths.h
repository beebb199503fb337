// SPDX-License-Identifier: Apache-2.0
// Learns from the streams of a node which distance follows which: after the last one, two and four
// distances between reads, the next distance and how often it came (the signature path
// of SPP: Kim et al., "Path confidence based lookahead prefetching", MICRO 2016, over three lengths
// of history).
//
// Bounds: kSets * kWays entries of a cache line, 512 KiB. Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace cairn {

// The last distances of a stream, the latest first.
class DeltaTrail {
 public:
  static constexpr unsigned kDeltasMax = 4;
  unsigned size() const { return size_; }
  void push(std::int32_t delta) {
    for (unsigned at = kDeltasMax - 1; at > 0; --at) deltas_[at] = deltas_[at - 1];
    deltas_[0] = delta;
    if (size_ < kDeltasMax) ++size_;
  }
  void clear() { size_ = 0; }
  std::int32_t operator[](unsigned at) const { return deltas_[at]; }

 private:
  std::array<std::int32_t, kDeltasMax> deltas_{};
  unsigned size_ = 0;
};

class DeltaPaths {
 public:
  struct Step {
    std::int32_t delta = 0;
    std::uint32_t blocks = 1;
    float share = 0;  // of the times that the trail was seen; 0: nothing is known
  };

  DeltaPaths() : entries_(kSets * kWays) {}

  // Behind the trail came a read of so many blocks at this distance.
  void learn(const DeltaTrail& trail, std::int32_t delta, std::uint32_t blocks);
  // The next distance, by the longest part of the trail that is known well enough.
  Step next(const DeltaTrail& trail) const;

  static constexpr std::size_t kSets = 2048;
  static constexpr std::size_t kWays = 4;

 private:
  static constexpr unsigned kFollowers = 8;
  static constexpr unsigned kLengths = 3;
  static constexpr std::array<unsigned, kLengths> kLengthOf = {1, 2, 4};
  static constexpr unsigned kTimesMax = 15;
  struct alignas(64) Entry {
    std::uint32_t tag = 0;  // 0: free
    std::array<std::int32_t, kFollowers> delta{};
    std::array<std::uint16_t, kFollowers> blocks{};
    std::array<std::uint8_t, kFollowers> times{};  // 0: no such follower
    std::uint8_t worth = 0;                        // 0 is replaced first
  };
  static_assert(sizeof(Entry) == 64, "one lookup touches one cache line");
  using Hashes = std::array<std::uint64_t, kLengths>;

  static Hashes hashes_of(const DeltaTrail& trail);
  static unsigned sum_of(const Entry& entry);
  static void count_follower(Entry& entry, std::int32_t delta, std::uint32_t blocks);
  const Entry* find(std::uint64_t hash) const;
  Entry& find_or_replace(std::uint64_t hash);

  std::vector<Entry> entries_;
};

}  // namespace cairn
