// SPDX-License-Identifier: Apache-2.0
// The grids in which programs have read arrays, by what the arrays look like. Programs read the
// fields of a simulation alike, its time steps, and the same file again tomorrow, so the grid of
// one says in what boxes the next is probably read. (ARCHIE leaves that to the user: section III-F,
// "accepts the user provided hints". This is our own.) A grid that is wrong costs nothing: after a
// box that does not fit it, nothing is expected.
//
// As bytes for the next node (base/kept_file.h): "CAIRNGRD", then the grids, the latest first, each
// as docs/formats.md has it. No names: not of files, nor of datasets.
//
// Units: cells, and bytes where it says so. Thread safety: none. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/kept_file.h"
#include "base/status.h"
#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

struct ArrayLooks {
  Coordinates shape;
  std::uint64_t cell_bytes = 0;
  Coordinates stored;  // the chunks in which the file has it; no numbers: it is contiguous
  bool operator==(const ArrayLooks&) const = default;
};

class KnownGrids {
 public:
  // If there are more, the one that was noted longest ago is forgotten.
  static constexpr std::size_t kGridsMax = 256;
  // A grid has a head, the array's shape, chunk, two ghost zones, origin, and the file's chunk.
  static constexpr KeptKind kKind{
      .noun = "file of arrays' grids",
      .magic = "CAIRNGRD",
      .version = 1,
      .value_min = sizeof(std::uint32_t),
      .bytes_max = 24 + kGridsMax * (16 + 6 * kDimensionsMax * sizeof(std::uint64_t))};

  // The later one counts, where two arrays look alike. Requires: a grid of an array that looks so.
  void note(const ArrayLooks& looks, const ChunkShape& shape);
  std::optional<ChunkGrid> find(const ArrayLooks& looks) const;
  std::size_t size() const { return known_.size(); }

  // Adds the grids of `older` behind those here, except for arrays that have one here.
  void add_older(const KnownGrids& older);

  std::string encode() const;
  // Errors: those of unseal(); kInvalid where a value cannot be.
  static Result<KnownGrids> decode(std::string_view bytes);

 private:
  struct Known {
    ArrayLooks looks;
    ChunkShape shape;
  };

  std::deque<Known>::const_iterator place_of(const ArrayLooks& looks) const;

  std::deque<Known> known_;  // the latest first
};

}  // namespace cairn::arrays
