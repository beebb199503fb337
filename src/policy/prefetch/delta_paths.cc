// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/delta_paths.h"

#include <algorithm>

#include "base/check.h"
#include "policy/prefetch/mixed_bits.h"

namespace cairn {
namespace {

constexpr std::uint8_t kPathWorthMax = 3;

std::uint32_t tag_of_path(std::uint64_t hash) {
  return std::max(1U, static_cast<std::uint32_t>(hash));
}

}  // namespace

DeltaPaths::Hashes DeltaPaths::hashes_of(const DeltaTrail& trail) {
  Hashes hashes{};
  std::uint64_t hash = 0;
  unsigned at = 0;
  for (unsigned length = 0; length < kLengths && kLengthOf[length] <= trail.size(); ++length) {
    for (; at < kLengthOf[length]; ++at)
      hash = mixed_bits(hash + 0x9e3779b97f4a7c15ULL + static_cast<std::uint32_t>(trail[at]));
    hashes[length] = hash;
  }
  return hashes;
}

unsigned DeltaPaths::sum_of(const Entry& entry) {
  unsigned sum = 0;
  for (const std::uint8_t times : entry.times) sum += times;
  return sum;
}

const DeltaPaths::Entry* DeltaPaths::find(std::uint64_t hash) const {
  const Entry* set = &entries_[(hash >> 32) % kSets * kWays];
  const std::uint32_t tag = tag_of_path(hash);
  for (unsigned way = 0; way < kWays; ++way) {
    if (set[way].tag == tag) return &set[way];
  }
  return nullptr;
}

// An entry seen once makes room for a new one. An entry seen again has to be passed over three
// times first, so that streams without a pattern do not wipe out what others have taught.
DeltaPaths::Entry& DeltaPaths::find_or_replace(std::uint64_t hash) {
  Entry* set = &entries_[(hash >> 32) % kSets * kWays];
  const std::uint32_t tag = tag_of_path(hash);
  Entry* least = set;
  for (unsigned way = 0; way < kWays; ++way) {
    if (set[way].tag == tag) {
      if (set[way].worth < kPathWorthMax) ++set[way].worth;
      return set[way];
    }
    if (set[way].worth < least->worth || (least->tag != 0 && set[way].tag == 0)) least = &set[way];
  }
  if (least->worth != 0) {
    for (unsigned way = 0; way < kWays; ++way) --set[way].worth;
  }
  *least = Entry{};
  least->tag = tag;
  return *least;
}

void DeltaPaths::count_follower(Entry& entry, std::int32_t delta, std::uint32_t blocks) {
  unsigned follower = kFollowers;
  for (unsigned at = 0; at < kFollowers && follower == kFollowers; ++at) {
    if (entry.times[at] != 0 && entry.delta[at] == delta) follower = at;
  }
  // The counts are halved so that the latest habits win, and when there is no room for another.
  while (follower == kFollowers || sum_of(entry) >= kTimesMax) {
    if (follower == kFollowers) {
      const auto free = std::find(entry.times.begin(), entry.times.end(), 0);
      if (free != entry.times.end()) {
        follower = static_cast<unsigned>(free - entry.times.begin());
        entry.delta[follower] = delta;
        continue;
      }
    }
    for (std::uint8_t& times : entry.times) times /= 2;
  }
  CAIRN_DCHECK(follower < kFollowers && entry.times[follower] < kTimesMax);
  ++entry.times[follower];
  entry.blocks[follower] = static_cast<std::uint16_t>(std::min<std::uint32_t>(blocks, UINT16_MAX));
}

void DeltaPaths::learn(const DeltaTrail& trail, std::int32_t delta, std::uint32_t blocks) {
  const Hashes hashes = hashes_of(trail);
  for (unsigned length = 0; length < kLengths && kLengthOf[length] <= trail.size(); ++length)
    count_follower(find_or_replace(hashes[length]), delta, blocks);
}

DeltaPaths::Step DeltaPaths::next(const DeltaTrail& trail) const {
  const Hashes hashes = hashes_of(trail);
  for (unsigned length = kLengths; length-- > 0;) {
    if (kLengthOf[length] > trail.size()) continue;
    const Entry* entry = find(hashes[length]);
    if (entry == nullptr) continue;
    const unsigned sum = sum_of(*entry);
    // A single distance is easily followed by the same one twice by accident.
    if (sum < (kLengthOf[length] > 1 ? 2U : 3U)) continue;
    const auto most = std::max_element(entry->times.begin(), entry->times.end());
    const auto follower = static_cast<unsigned>(most - entry->times.begin());
    return Step{entry->delta[follower], entry->blocks[follower],
                static_cast<float>(*most) / static_cast<float>(sum)};
  }
  return Step{};
}

}  // namespace cairn
