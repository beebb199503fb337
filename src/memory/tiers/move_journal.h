// SPDX-License-Identifier: Apache-2.0
// How much has moved between the tiers, into them and out of them, and why: one pair of counters
// for each way and reason, shared by all processes of a node.
//
// A move costs a copy of a block or a system call, so that counting it on a shared line is no cost.
// What a program reads and writes itself is not a move, and is counted in its own shards
// (memory/arena/counters.h).
//
// Thread safety: any thread of any process. Ownership: the counters live in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "memory/catalog/block_state.h"

namespace cairn {

class MoveJournal {
 public:
  // Places, beside the numbers of the tiers.
  static constexpr unsigned kStore = kTiersMax;        // the backing store
  static constexpr unsigned kDropped = kTiersMax + 1;  // out of the tiers, without being stored
  static constexpr unsigned kPlaces = kTiersMax + 2;

  struct Cell {
    std::atomic<std::uint64_t> blocks;
    std::atomic<std::uint64_t> bytes;
  };
  static constexpr std::size_t kCells = std::size_t{kPlaces} * kPlaces * kPlacementReasons;
  static constexpr std::size_t kBytes = kCells * sizeof(Cell);
  // The table in the control segment, as its map knows it.
  struct alignas(64) Bytes {
    std::byte bytes[kBytes];
  };
  static_assert(kPlacementReasons <= 256, "a reason is a byte in descriptors");

  MoveJournal() = default;
  explicit MoveJournal(void* cells) : cells_(static_cast<Cell*>(cells)) {}

  void note(unsigned from, unsigned to, PlacementReason reason, std::uint64_t bytes) const {
    Cell& cell = at(from, to, reason);
    cell.blocks.fetch_add(1, std::memory_order_relaxed);
    cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  Cell& at(unsigned from, unsigned to, PlacementReason reason) const {
    // Reasons come from blocks' descriptors, which clients write.
    return cells_[(std::size_t{from} % kPlaces * kPlaces + to % kPlaces) * kPlacementReasons +
                  static_cast<unsigned>(reason) % kPlacementReasons];
  }

 private:
  Cell* cells_ = nullptr;
};

}  // namespace cairn
