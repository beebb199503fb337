// SPDX-License-Identifier: Apache-2.0
// In what chunks a program reads an array, learned from its first reads. (The paper leaves it to
// the user: ARCHIE, section III-F, "accepts the user provided hints". This is our own.)
//
// A program that goes through an array in boxes shows, in each dimension, how large its boxes are,
// and in what steps they begin. By what a box is larger than the step, the program reads along
// cells of its neighbours: the ghost zone. For a dimension of 24 cells, chunks of 8, ghost 1:
//
//   [0 ........ 9)                  cut at the edge
//             [7 ........ 17)       size 10, the usual one
//                       [15 .... 24)
//
// The step is the greatest common divisor of the distances between the boxes of the usual size, so
// it does not matter which of several processes reads which box. Boxes at the edges are cut, so
// their size says nothing about the others; where nothing else was seen yet, their ghost zone is
// supposed to be as wide as that of another dimension.
//
// Units: cells. Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

// The numbers of one dimension.
struct DimensionShape {
  std::uint64_t chunk = 0;
  std::uint64_t before = 0;  // width of the ghost zone
  std::uint64_t behind = 0;
  std::uint64_t origin = 0;
};

class DimensionLearner {
 public:
  // Sizes that are remembered: of more, those seen least are forgotten.
  static constexpr std::size_t kSizesMax = 8;

  // `first` to `end` of `cells`. Requires: not empty.
  void observe(std::uint64_t first, std::uint64_t end, std::uint64_t cells);

  // What boxes away from the edges show; none if there were none.
  std::optional<DimensionShape> shown() const;
  // What those at the edges show, if the ghost zone behind is that wide. Requires: some were seen.
  DimensionShape guessed(std::uint64_t behind) const;

 private:
  // The boxes of one size.
  struct Size {
    std::uint64_t count = 0;
    std::uint64_t reads = 0;
    std::uint64_t first = 0;  // where one of them begins
    std::uint64_t step = 0;   // 0: all begin there
  };

  Size& size_of(std::uint64_t count);

  std::array<Size, kSizesMax> sizes_{};
  std::uint64_t at_lower_edge_ = 0;  // cells of the last box there
  std::uint64_t last_count_ = 0;
  std::uint64_t last_first_ = 0;
};

class ShapeLearner {
 public:
  // Reads before anything is believed.
  static constexpr std::uint64_t kReadsWanted = 3;

  // Requires: the shape of an array that has cells.
  explicit ShapeLearner(const Coordinates& array);

  // Requires: a box of the array that is not empty.
  void observe(const Box& read);

  // The shape as far as it shows by now, of which a ChunkGrid of the array can be made; none before
  // kReadsWanted.
  std::optional<ChunkShape> shape() const;

 private:
  Coordinates array_;
  std::array<DimensionLearner, kDimensionsMax> dimensions_;
  std::uint64_t reads_ = 0;
};

}  // namespace cairn::arrays
