// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/slab_ahead.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {
namespace {

// Four processes that share an array in batches, each with what it has seen itself.
class Team {
 public:
  Team(const Coordinates& array, const ChunkShape& shape, std::size_t processes)
      : grid_(*ChunkGrid::of(array, shape)) {
    for (std::size_t at = 0; at < processes; ++at) team_.emplace_back(array, 4);
    brought_.assign(*whole(array).cells() * 4 / SlabAhead::kBlockBytes + 1, false);
  }
  // Whether everything that the batch reads had been brought in before it began.
  bool batch(std::uint64_t first) {
    bool is_there = true;
    std::vector<ByteRun> runs;
    for (std::size_t at = 0; at < team_.size() && first + at < grid_.chunks(); ++at) {
      const Box box = grid_.with_ghost(first + at);
      for (const ByteRun& row : runs_of(grid_.array(), 4, box)) {
        for (std::uint64_t block = row.offset / SlabAhead::kBlockBytes;
             block <= (row.end() - 1) / SlabAhead::kBlockBytes; ++block)
          is_there = is_there && brought_[block];
      }
      if (const auto run = team_[at].observe(box)) runs.push_back(*run);
    }
    for (const ByteRun& run : runs) {
      bytes_ += run.bytes;
      for (std::uint64_t at = run.offset; at < run.end(); at += SlabAhead::kBlockBytes)
        brought_[at / SlabAhead::kBlockBytes] = true;
      brought_[(run.end() - 1) / SlabAhead::kBlockBytes] = true;
    }
    return is_there;
  }
  std::uint64_t chunks() const { return grid_.chunks(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  ChunkGrid grid_;
  std::vector<SlabAhead> team_;
  std::vector<bool> brought_;
  std::uint64_t bytes_ = 0;
};

TEST(SlabAhead, TheBatchesAfterTheFirstFindTheirRows) {
  ChunkShape shape = ChunkShape::plain({256, 256});
  shape.ghost = GhostWidth::around({1, 1});
  Team team({1024, 1024}, shape, 4);
  EXPECT_FALSE(team.batch(0));
  for (std::uint64_t first = 4; first < team.chunks(); first += 4) EXPECT_TRUE(team.batch(first));
}

TEST(SlabAhead, SmallChunksOfManyDimensionsFindTheirsSoon) {
  ChunkShape shape = ChunkShape::plain({40, 40, 40});
  shape.ghost = GhostWidth::around({1, 1, 1});
  Team team({160, 160, 160}, shape, 4);
  int found = 0;
  int batches = 0;
  for (std::uint64_t first = 0; first < team.chunks(); first += 4, ++batches)
    found += team.batch(first) ? 1 : 0;
  EXPECT_GE(found, batches * 3 / 4);
}

TEST(SlabAhead, WhoReadsHereAndThereGetsLittle) {
  constexpr unsigned kSeed = 26112026;
  std::mt19937 random(kSeed);
  const Coordinates array{4096, 4096};
  SlabAhead ahead(array, 4);
  std::uint64_t brought = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    const Box box{{random() % 4000, random() % 4000}, {8, 8}};
    if (const auto run = ahead.observe(box)) brought += run->bytes;
  }
  EXPECT_LE(brought, std::uint64_t{64} << 20);
  EXPECT_TRUE(ahead.is_done());
}

TEST(SlabAhead, AColumnDoesNotBringInTheArray) {
  const Coordinates array{4096, 262144};
  SlabAhead ahead(array, 4);
  const auto run = ahead.observe(Box{{0, 77}, {4096, 1}});
  ASSERT_TRUE(run.has_value());
  EXPECT_LE(run->bytes, 2 * 4096 * SlabAhead::kBlockBytes);
}

TEST(SlabAhead, NothingIsAskedForTwiceNorBehindTheEnd) {
  const Coordinates array{512, 512};
  SlabAhead ahead(array, 8);
  std::uint64_t end = 0;
  for (std::uint64_t row = 0; row < 512; row += 16) {
    const auto run = ahead.observe(Box{{row, 0}, {16, 512}});
    if (!run) continue;
    EXPECT_GE(run->offset, end);
    end = run->end();
  }
  EXPECT_EQ(end, 512 * 512 * 8);
  EXPECT_TRUE(ahead.is_done());
}

// The first read has the slab that it spans brought in, and the next one.
TEST(SlabAhead, StepsThatAreCheaperToReadThanToJumpOverAreASlab) {
  constexpr std::uint64_t kCells = std::uint64_t{16} << 20;
  constexpr std::uint64_t kPart = kCells / 16;
  SlabAhead ahead({kCells}, 4);
  std::uint64_t end = 0;
  for (std::uint64_t part = 0; part < 15; ++part) {
    const auto run = ahead.observe(Hyperslab{{part * kPart}, {8192}, {kPart / 8192}, {1024}});
    ASSERT_TRUE(run) << part;
    end = run->end();
    EXPECT_GE(end, (part + 2) * kPart * 4 - std::uint64_t{64} * 1024) << part;
  }
  EXPECT_LE(end, kCells * 4);
}

TEST(SlabAhead, BlocksOfABandAreASlab) {
  SlabAhead ahead({4096, 4096}, 4);
  const Hyperslab blocks{{0, 64}, {128, 128}, {1, 32}, {64, 64}};
  const auto run = ahead.observe(blocks);
  ASSERT_TRUE(run);
  EXPECT_LE(run->offset, 256u);
  EXPECT_GE(run->bytes, std::uint64_t{3} << 19);
}

// A read waits for its own slab where it wants most of its blocks.
TEST(SlabAhead, ReadsOfWholeSlabsWaitForThem) {
  const SlabAhead ahead({1024, 1024}, 4);
  const ByteRun slab = ahead.needed_now(Box{{256, 0}, {256, 64}});
  EXPECT_EQ(slab.offset, 256u * 4096);
  EXPECT_EQ(slab.bytes, 255u * 4096 + 64 * 4);
  EXPECT_EQ(ahead.needed_now(Box{{256, 0}, {256, 1024}}).bytes, 0u) << "in one piece";
  EXPECT_EQ(ahead.needed_now(Box{{256, 0}, {16, 64}}).bytes, 0u) << "in a block or two";
  const SlabAhead wide({std::uint64_t{1} << 24}, 4);
  const auto every = [&](std::uint64_t cells) {
    return wide.needed_now(Hyperslab{{0}, {cells}, {64}, {1}}).bytes;
  };
  EXPECT_GT(every(std::uint64_t{1} << 14), 0u);
  EXPECT_EQ(every(std::uint64_t{3} << 14), 0u) << "one block of three";
}

TEST(SlabAhead, OfCellsThatLieFarApartNothingIsBroughtIn) {
  SlabAhead ahead({std::uint64_t{256} << 20}, 4);
  for (std::uint64_t first = 0; first < 16; ++first)
    EXPECT_FALSE(ahead.observe(Hyperslab{{first}, {std::uint64_t{1} << 20}, {200}, {1}}));
}

}  // namespace
}  // namespace cairn::arrays
