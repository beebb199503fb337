// SPDX-License-Identifier: Apache-2.0
// One array that programs read in boxes: what shape their chunks have, and which ones to gather.
//
// All readers of the node are seen here, so the shape shows after the first few boxes of a parallel
// program, and what one rank reads says what the others are going to.
//
// Units: cells; chunks where it says so. Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "policy/arrays/chunk_ahead.h"
#include "policy/arrays/chunk_grid.h"
#include "policy/arrays/file_array.h"
#include "policy/arrays/shape_learner.h"

namespace cairn::node {

class ArrayWatch {
 public:
  // Requires: an array with cells, whose bytes 64 bits count.
  explicit ArrayWatch(const arrays::FileArray& array);

  const arrays::FileArray& array() const { return array_; }
  // None before the first boxes have shown it.
  const arrays::ChunkGrid* grid() const { return grid_ ? &*grid_ : nullptr; }
  // Those before it, the latest first. The tiers may still have chunks of theirs.
  const std::deque<arrays::ChunkGrid>& earlier_grids() const { return earlier_; }
  // Whether the grid is another one than at the last such question.
  bool take_new_grid() { return std::exchange(is_new_grid_, false); }
  // Whether boxes have shown the grid since the last such question.
  bool take_shown_grid() { return std::exchange(is_newly_shown_, false); }
  // Whether some box of the array has been read twice: then others may be, too.
  bool is_read_again() const { return is_read_again_; }

  // It is probably read so: the latest such word counts until boxes have shown a grid. Reads that
  // do not fit may show another one later. Requires: a grid of this array.
  void expect(const arrays::ChunkGrid& grid);

  // The reader reads that box of the array. Returns: the boxes that are read next, as it seems, the
  // soonest first: chunks with their ghost zones.
  std::vector<arrays::Box> observe(std::uint64_t reader, const arrays::Box& box);

 private:
  // Reads that are looked at once more when the grid is another one.
  static constexpr std::size_t kReadsKept = 64;
  struct Read {
    std::uint64_t reader;
    arrays::Box box;
  };

  // The watch forgets older ones.
  static constexpr std::size_t kEarlierGridsMax = 8;

  // Boxes that are known again; of more, all are forgotten.
  static constexpr std::size_t kBoxesKnown = 16384;

  void note_read(const arrays::Box& box);
  // Whether the grid is another one now.
  bool learn(const arrays::Box& box);
  void change_grid(const arrays::ChunkGrid& grid);
  void note_shown();
  void expect_after(const Read& read, std::vector<arrays::Box>* next);

  arrays::FileArray array_;
  arrays::ShapeLearner learner_;
  std::optional<arrays::ChunkGrid> grid_;
  std::deque<arrays::ChunkGrid> earlier_;
  std::optional<arrays::ChunkAhead> ahead_;
  std::deque<Read> reads_;  // the latest last
  bool is_new_grid_ = false;
  bool is_shown_ = false;  // by a box of the present grid
  bool is_newly_shown_ = false;
  bool is_read_again_ = false;
  std::unordered_set<std::uint64_t> known_;  // a word of each box's name
};

}  // namespace cairn::node
