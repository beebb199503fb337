// SPDX-License-Identifier: Apache-2.0
// CoordHash (ARCHIE, section III-B, equation 3): the number of a cell of an array in row-major
// order,
//
//   CoordHash(i_0 ... i_{d-1}) = sum over k of i_k * product over l > k of D_l,
//
// and its inverse (figure 6). A chunk of the array is named by the hashes of its first and its last
// cell. (Two slips of the paper are put right: in an array of [8,8], cell (3,3) is number 27, where
// the text has 24; and figure 6 gives the first coordinate what is left of the hash after all the
// divisions, not the hash itself. tests of coord_hash_test.cc hold both.)
//
// Units: cells. Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "policy/arrays/box.h"

namespace cairn::arrays {

class CoordHash {
 public:
  // Errors: kInvalid for an array of more cells than 64 bits count: its hashes would not be unique.
  static Result<CoordHash> of(const Coordinates& shape);

  // Requires: a cell of the array.
  std::uint64_t operator()(const Coordinates& cell) const;
  // The cell of that hash. Requires: the array has it.
  Coordinates revert(std::uint64_t hash) const;

  // The name of a chunk: "FIRST-LAST". Requires: a box of the array that is not empty.
  std::string name_of(const Box& chunk) const;
  // Errors: kInvalid for what is no name of a chunk of this array.
  Result<Box> chunk_named(const std::string& name) const;

  const Coordinates& shape() const { return shape_; }
  std::uint64_t cells() const { return cells_; }

 private:
  CoordHash(const Coordinates& shape, std::uint64_t cells);

  Coordinates shape_;
  Coordinates steps_;  // how far the hash goes with each coordinate
  std::uint64_t cells_ = 0;
};

}  // namespace cairn::arrays
