// SPDX-License-Identifier: Apache-2.0
// The grids of arrays for all who expect boxes, and for the nodes after this one: a file in the
// directory where a node keeps what it has learned (`prefetch.remember`). Several nodes may use the
// directory at once: each puts what its programs have shown before what it finds there.
//
// Thread safety: all functions from any thread; find() and note() do not wait for the directory,
// which may be a network's. One that cannot be read or written costs nothing but what would be
// kept.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "policy/arrays/known_grids.h"

namespace cairn::node {

class GridShelf {
 public:
  static constexpr std::string_view kFileName = "arrays.grids";

  // Empty: no directory. It is not touched before the first call of take_out().
  explicit GridShelf(std::string directory) : directory_(std::move(directory)) {}

  // Reads what earlier nodes have put there.
  void take_out();
  // In what grid an array was read last that looks so.
  std::optional<arrays::ChunkGrid> find(const arrays::ArrayLooks& looks) const;
  // Boxes have shown it.
  void note(const arrays::ArrayLooks& looks, const arrays::ChunkGrid& grid);
  // Writes the file, if anything was noted since.
  void put_away();

 private:
  Status read(arrays::KnownGrids* grids) const;
  Status write() const;

  const std::string directory_;
  mutable std::mutex mutex_;
  arrays::KnownGrids noted_;
  arrays::KnownGrids taken_out_;  // as they were then
  bool has_news_ = false;
};

}  // namespace cairn::node
