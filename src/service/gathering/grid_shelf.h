// SPDX-License-Identifier: Apache-2.0
// The grids of arrays for all who expect boxes, and for the nodes after this one: a file in the
// directory where a node keeps what it has learned (`prefetch.remember`). Several nodes may use the
// directory at once: each puts what it has noted before what it finds there.
//
// Thread safety: all functions from any thread. A directory that cannot be read or written costs
// nothing but what would be kept.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "policy/arrays/known_grids.h"

namespace cairn::node {

class GridShelf {
 public:
  static constexpr std::string_view kFileName = "arrays.grids";

  // Empty: no directory. It is not touched before the first call.
  explicit GridShelf(const std::string& directory);

  // In what grid an array was read last that looks so.
  std::optional<arrays::ChunkGrid> find(const arrays::ArrayLooks& looks);
  void note(const arrays::ArrayLooks& looks, const arrays::ChunkGrid& grid);
  // Writes the file, if there is anything new.
  void put_away();

 private:
  // Both require the lock.
  void take_out_once();
  arrays::KnownGrids of_file() const;

  const std::string path_;  // empty: there is no file
  std::mutex mutex_;
  arrays::KnownGrids grids_;
  bool is_taken_out_ = false;
  bool has_news_ = false;
};

}  // namespace cairn::node
