// SPDX-License-Identifier: Apache-2.0
// In what grids of chunks the programs of the node read arrays, as the service has learned it: a
// reader finds by it the chunks that its box is in. What chunks there are, it does not say.
//
// Thread safety: find() by any thread; publish() by one at a time. Ownership: lives in the control
// segment. All zeros is a valid board.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

// An array as all processes of the node name it. The record of its file may become another file's:
// then its grid is that of some other array, and no chunk is found by it.
struct ArrayName {
  ObjectIndex file = ObjectIndex::kNone;
  std::array<std::uint64_t, 2> words{};
};

// Cells, in each dimension: of a chunk, of the ghost zones before and behind it, and where some
// chunk begins (policy/arrays/chunk_grid.h).
struct GridNumbers {
  static constexpr unsigned kDimensionsMax = 32;
  using Row = std::array<std::uint64_t, kDimensionsMax>;

  std::uint32_t dimensions = 0;
  std::array<Row, 4> rows{};
};

class ArrayBoard {
 public:
  static constexpr unsigned kGridsMax = 64;

  // Forgets another array where there is no room for more.
  void publish(const ArrayName& name, const GridNumbers& grid);
  // False where none is known, or it is just being changed. The numbers may be anybody's.
  bool find(const ArrayName& name, GridNumbers* grid) const;

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint32_t> sequence;  // odd while it is written; 0: it never was
    std::atomic<std::uint32_t> file;
    std::atomic<std::uint64_t> words[2];
    std::atomic<std::uint32_t> dimensions;
    std::atomic<std::uint64_t> rows[4][GridNumbers::kDimensionsMax];

    bool is_of(const ArrayName& name) const {
      return file.load(std::memory_order_relaxed) == raw(name.file) &&
             words[0].load(std::memory_order_relaxed) == name.words[0] &&
             words[1].load(std::memory_order_relaxed) == name.words[1];
    }
  };

  Entry& place_for(const ArrayName& name);

  Entry entries_[kGridsMax];
  std::atomic<std::uint32_t> victim_;
};

}  // namespace cairn
