// SPDX-License-Identifier: Apache-2.0
// A hint of a user: in what chunks a program is going to read a dataset (ARCHIE, section III-F,
// "accepts the user provided hints").
//
//   results/field.h5:/density chunk=[8192,8192] ghost=[1,1]
//
// Units: cells. Thread safety: values.
#pragma once

#include <string>

#include "base/status.h"
#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

struct ArrayHint {
  static constexpr std::size_t kTextMax = 8192;  // bytes: two paths, and the numbers

  std::string text;     // as it was written
  std::string file;     // a path, or a pattern of paths; without a slash, of names
  std::string dataset;  // its path in the file
  Coordinates chunk;
  Coordinates ghost;  // on both sides of a chunk

  ChunkShape shape() const;
  // What can be said before the array is known. Errors: kInvalid, which number is wrong and what
  // would be right.
  Status check() const;
};

// The text of which parse_array_hint() makes that hint.
std::string text_of(const ArrayHint& hint);

// Without "ghost=" there is no ghost zone. Errors: kInvalid, what is no hint about it.
Result<ArrayHint> parse_array_hint(const std::string& text);

}  // namespace cairn::arrays
