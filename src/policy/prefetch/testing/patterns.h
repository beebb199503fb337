// SPDX-License-Identifier: Apache-2.0
// How programs read: sequentially, strided, in nests of loops over arrays, shuffled, without order.
// For the tests of prediction, and for measuring it.
//
// Blocks are of one file; what a pattern interleaves are its streams. The same in every run.
//
// Thread safety: values.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/random_source.h"
#include "policy/prefetch/predictor.h"

namespace cairn::testing {

struct StreamRead {
  unsigned stream = 0;
  BlockRun run;
};

struct AccessPattern {
  std::string name;
  std::vector<StreamRead> reads;
  std::size_t learned_after = 0;  // reads; what comes before cannot be known to anyone
  unsigned streams = 1;
};

using Runs = std::vector<BlockRun>;

inline AccessPattern one_stream(std::string name, const Runs& runs) {
  AccessPattern pattern{std::move(name), {}, 0, 1};
  for (const BlockRun& run : runs) pattern.reads.push_back(StreamRead{0, run});
  return pattern;
}

// Each next read is of a stream drawn at random.
inline AccessPattern interleaved(std::string name, const std::vector<Runs>& streams,
                                 std::uint64_t seed) {
  AccessPattern pattern{std::move(name), {}, 0, static_cast<unsigned>(streams.size())};
  RandomSource random(seed);
  std::vector<std::size_t> read(streams.size(), 0);
  std::vector<unsigned> live;
  for (unsigned stream = 0; stream < streams.size(); ++stream) live.push_back(stream);
  while (!live.empty()) {
    const std::uint32_t drawn = random.below(static_cast<std::uint32_t>(live.size()));
    const unsigned stream = live[drawn];
    pattern.reads.push_back(StreamRead{stream, streams[stream][read[stream]++]});
    if (read[stream] == streams[stream].size()) live.erase(live.begin() + drawn);
  }
  return pattern;
}

inline Runs front_of(Runs runs, std::size_t count) {
  runs.resize(std::min(runs.size(), count));
  return runs;
}

// One loop: so many steps, each so many blocks further.
struct Loop {
  std::int64_t steps = 0;
  std::int64_t blocks = 0;
};

// The outermost loop first; `read_blocks` in each of its innermost steps.
inline Runs loop_nest_runs(const std::vector<Loop>& loops, std::uint32_t read_blocks = 1,
                           std::int64_t first = 0) {
  Runs runs;
  std::vector<std::int64_t> step(loops.size(), 0);
  for (;;) {
    std::int64_t block = first;
    for (std::size_t at = 0; at < loops.size(); ++at) block += step[at] * loops[at].blocks;
    runs.push_back(BlockRun{block, read_blocks});
    std::size_t at = loops.size();
    while (at > 0 && ++step[at - 1] == loops[at - 1].steps) step[--at] = 0;
    if (at == 0) return runs;
  }
}

// An array of so many rows of blocks by square tiles, each with `ghost` cells of its neighbours
// around it as far as it has any; tiles at the end may be smaller.
struct TiledArray {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tile_side = 0;
  std::int64_t ghost = 0;
  bool reads_whole_rows = false;  // of a tile, in one go; else block by block
};

inline Runs tile_runs(const TiledArray& array) {
  Runs runs;
  const std::int64_t reach = array.tile_side + array.ghost;
  for (std::int64_t top = 0; top < array.rows; top += array.tile_side) {
    for (std::int64_t left = 0; left < array.columns; left += array.tile_side) {
      const std::int64_t begin = std::max<std::int64_t>(0, left - array.ghost);
      const std::int64_t end = std::min(array.columns, left + reach);
      const std::int64_t read_blocks = array.reads_whole_rows ? end - begin : 1;
      for (std::int64_t row = std::max<std::int64_t>(0, top - array.ghost);
           row < std::min(array.rows, top + reach); ++row) {
        for (std::int64_t column = begin; column < end; column += read_blocks)
          runs.push_back(
              BlockRun{row * array.columns + column, static_cast<std::uint32_t>(read_blocks)});
      }
    }
  }
  return runs;
}

// As `./dev bench prefetch` has them read (bench/harness/patterns.py): a flat array, of whose tiles
// half are at an edge.
inline AccessPattern flat_ghost_tiles() {
  return one_stream("tiles-2d-with-ghost-flat", front_of(tile_runs({16, 128, 4, 1}), 3600));
}

// All of `blocks`, in an order of no pattern.
inline Runs shuffled_runs(std::int64_t blocks, RandomSource& random) {
  Runs runs;
  for (std::int64_t block = 0; block < blocks; ++block) runs.push_back(BlockRun{block, 1});
  for (std::size_t left = runs.size(); left > 1; --left)
    std::swap(runs[left - 1], runs[random.below(static_cast<std::uint32_t>(left))]);
  return runs;
}

// Any of `blocks`.
inline Runs random_runs(std::size_t count, std::uint32_t blocks, RandomSource& random,
                        std::int64_t first = 0) {
  Runs runs;
  while (runs.size() < count) runs.push_back(BlockRun{first + random.below(blocks), 1});
  return runs;
}

// The lower the block the likelier (a Pareto distribution of exponent 1).
inline Runs skewed_runs(std::size_t count, std::int64_t blocks, RandomSource& random) {
  Runs runs;
  while (runs.size() < count) {
    const double drawn = (random.below(1U << 30) + 1.0) / (1U << 30);
    runs.push_back(BlockRun{static_cast<std::int64_t>(2000 * (1 / drawn - 1)) % blocks, 1});
  }
  return runs;
}

inline Runs joined(std::vector<Runs> parts) {
  Runs runs;
  for (const Runs& part : parts) runs.insert(runs.end(), part.begin(), part.end());
  return runs;
}

// Records of `bytes`, one behind the other, where blocks are of 64 KiB.
inline Runs record_runs(std::size_t count, std::int64_t bytes) {
  constexpr std::int64_t kBytes = 64 * 1024;
  Runs runs;
  for (std::int64_t begin = 0; runs.size() < count; begin += bytes) {
    const std::int64_t end = (begin + bytes - 1) / kBytes + 1;
    runs.push_back(BlockRun{begin / kBytes, static_cast<std::uint32_t>(end - begin / kBytes)});
  }
  return runs;
}

// One behind the other, each of 1 to `blocks_max` blocks.
inline Runs contiguous_runs(std::size_t count, std::uint32_t blocks_max, RandomSource& random) {
  Runs runs;
  for (std::int64_t first = 0; runs.size() < count; first = runs.back().end())
    runs.push_back(BlockRun{first, 1 + random.below(blocks_max)});
  return runs;
}

// What can be foreseen from the reads alone, about `count` reads of each.
inline std::vector<AccessPattern> array_patterns(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  RandomSource random(19);
  std::vector<Runs> sequential16;
  for (std::int64_t stream = 0; stream < 16; ++stream)
    sequential16.push_back(loop_nest_runs({{count / 16, 1}}, 1, stream * 1'000'000));
  const auto cut = [&](std::string name, Runs runs) {
    return one_stream(std::move(name), front_of(std::move(runs), size));
  };
  return {
      cut("sequential", loop_nest_runs({{count, 1}})),
      interleaved("sequential-16-streams", sequential16, 3),
      cut("records-of-100-KiB", record_runs(size, 100 * 1024)),
      cut("sequential-reads-of-1-to-8", contiguous_runs(size, 8, random)),
      cut("strided", loop_nest_runs({{count, 7}})),
      cut("strided-reads-of-4", loop_nest_runs({{count, 9}}, 4)),
      cut("reverse", loop_nest_runs({{count, -1}}, 1, count)),
      cut("nested-2", loop_nest_runs({{count / 13, 1000}, {13, 3}})),
      cut("nested-2-reads-of-4", loop_nest_runs({{count / 13, 1000}, {13, 12}}, 4)),
      cut("rows-of-unaligned-reads", loop_nest_runs({{count / 11, 1000}, {11, 8}}, 9)),
      cut("nested-3", loop_nest_runs({{count / 36, 10000}, {4, 700}, {9, 11}})),
      cut("tiles-2d", tile_runs({256, 256, 8, 0})),
      cut("tiles-2d-with-ghost", tile_runs({256, 256, 4, 1})),
      cut("tiles-2d-with-ghost-by-rows", tile_runs({256, 256, 4, 1, true})),
      flat_ghost_tiles(),
      cut("sub-volume-3d", loop_nest_runs({{64, 64 * 64}, {32, 64}, {16, 1}}, 1, 16 * 64 + 16)),
      cut("columns-of-chunks", loop_nest_runs({{256, 1}, {256, 256}})),
  };
}

// The same shuffle in each of ten epochs.
inline AccessPattern repeated_shuffle(std::int64_t count) {
  RandomSource random(5);
  const Runs epoch = shuffled_runs(count / 10, random);
  AccessPattern pattern = one_stream("same-shuffle", joined(std::vector<Runs>(10, epoch)));
  pattern.learned_after = epoch.size();
  return pattern;
}

// Another one in each.
inline AccessPattern epoch_shuffles(std::int64_t count) {
  RandomSource random(7);
  std::vector<Runs> epochs;
  while (epochs.size() < 10) epochs.push_back(shuffled_runs(count / 10, random));
  return one_stream("other-shuffles", joined(std::move(epochs)));
}

// What nobody can foresee.
inline std::vector<AccessPattern> patternless(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  RandomSource random(11);
  std::vector<AccessPattern> patterns = {
      epoch_shuffles(count), one_stream("skewed", skewed_runs(size, 5000, random)),
      one_stream("random", random_runs(size, 1'000'000, random)),
      one_stream("random-in-small-file", random_runs(size, 500, random))};
  return patterns;
}

// Streams of different kinds beside each other; a quarter of the reads is random.
inline AccessPattern mixed_streams(std::int64_t count) {
  RandomSource random(13);
  const std::int64_t each = count / 4;
  return interleaved("mixed-streams",
                     {loop_nest_runs({{each, 1}}), loop_nest_runs({{each, 5}}, 1, 10'000'000),
                      loop_nest_runs({{each / 13, 1000}, {13, 3}}, 1, 20'000'000),
                      random_runs(static_cast<std::size_t>(each), 1'000'000, random, 30'000'000)},
                     17);
}

}  // namespace cairn::testing
