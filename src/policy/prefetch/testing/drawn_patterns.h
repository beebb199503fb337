// SPDX-License-Identifier: Apache-2.0
// Orders of reads whose parameters are drawn from a seed, as bench/harness/patterns.py draws them.
//
// Thread safety: values.
#pragma once

#include "policy/prefetch/testing/patterns.h"

namespace cairn::testing {

// 2 to 8 walks of different steps through one stream, one of them backwards, at rates of 1 to 3, in
// turn or drawn.
inline AccessPattern walks_through_one(std::uint64_t seed, std::size_t count) {
  struct Walk {
    std::int64_t next = 0;
    std::int64_t step = 0;
  };
  RandomSource random(seed);
  const std::uint32_t walks = 2 + random.below(7);
  const bool in_turn = random.below(2) == 0;
  std::vector<Walk> walk(walks);
  std::vector<std::uint32_t> turn;
  for (std::uint32_t at = 0; at < walks; ++at) {
    const std::int64_t step = 1 + 2 * at + random.below(2);
    const std::int64_t first = 1'000'000 * (1 + at) + random.below(1000);
    walk[at] = at == 0 ? Walk{first, -step} : Walk{first, step};
    turn.insert(turn.end(), 1 + random.below(3), at);
  }
  Runs runs;
  for (std::size_t read = 0; read < count; ++read) {
    const auto size = static_cast<std::uint32_t>(turn.size());
    Walk& next = walk[turn[in_turn ? read % size : random.below(size)]];
    runs.push_back(BlockRun{next.next, 1});
    next.next += next.step;
  }
  return one_stream("walks, seed " + std::to_string(seed), runs);
}

// A file in extents of so many blocks, drawn, in random order.
inline AccessPattern extents_of_unknown_length(std::uint64_t seed, std::int64_t blocks) {
  RandomSource random(seed);
  const std::uint32_t shortest = 2 + random.below(5);
  const std::uint32_t spread = 12 + random.below(32);
  Runs extents;
  for (std::int64_t first = 0; first < blocks; first = extents.back().end())
    extents.push_back(BlockRun{first, shortest + random.below(spread)});
  for (std::size_t left = extents.size(); left > 1; --left)
    std::swap(extents[left - 1], extents[random.below(static_cast<std::uint32_t>(left))]);
  Runs runs;
  for (const BlockRun& extent : extents) {
    for (std::int64_t block = extent.first; block < extent.end(); ++block)
      runs.push_back(BlockRun{block, 1});
  }
  return one_stream("extents, seed " + std::to_string(seed), runs);
}

// Epochs of a shuffle in each of which a tenth of the reads of the one before have changed places.
// Reads count from the third epoch on.
inline AccessPattern changing_shuffle(std::uint64_t seed, std::int64_t blocks) {
  RandomSource random(seed);
  Runs epoch = shuffled_runs(blocks, random);
  const auto size = static_cast<std::uint32_t>(epoch.size());
  Runs runs;
  for (int number = 0; number < 6; ++number) {
    runs.insert(runs.end(), epoch.begin(), epoch.end());
    for (std::uint32_t change = 0; change < size / 20; ++change)
      std::swap(epoch[random.below(size)], epoch[random.below(size)]);
  }
  AccessPattern pattern = one_stream("changing shuffle, seed " + std::to_string(seed), runs);
  pattern.learned_after = 2 * epoch.size();
  return pattern;
}

// Small steps at random, mostly forward.
inline AccessPattern drifting_walk(std::uint64_t seed, std::size_t count) {
  RandomSource random(seed);
  const std::uint32_t back = 1 + random.below(3);
  const std::uint32_t reach = back + 5 + random.below(4);
  Runs runs;
  std::int64_t block = 1000;
  while (runs.size() < count) {
    runs.push_back(BlockRun{block, 1});
    block += static_cast<std::int64_t>(random.below(reach)) - back;
  }
  return one_stream("drifting walk, seed " + std::to_string(seed), runs);
}

}  // namespace cairn::testing
