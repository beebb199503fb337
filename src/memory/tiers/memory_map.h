// SPDX-License-Identifier: Apache-2.0
// The map of the control segment: one list of all tables, from which the service and every client
// compute the same places. Nothing grows, is rehashed or allocated.
//
// A board is one struct that its module declares, and begins on a cache line of its own. A table
// has as many elements as the node's shape asks for, and begins on a page of its own, so that what
// nobody uses takes no memory. A new board or table is one name in `Table` and one row of the list
// in memory_map.cc.
//
// Thread safety: immutable after construction. Ownership: knows places, owns no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/cycle_clock.h"
#include "memory/pool/bucket_pool.h"
#include "memory/tiers/memory_shape.h"

namespace cairn {

inline constexpr std::uint64_t kControlMagic = 0x31304e5249414343;  // "CCAIRN01", little endian
inline constexpr std::uint32_t kLayoutVersion = 27;

// The begin of the control segment. The service writes it once, before anybody attaches; each
// client compares it when it attaches.
struct alignas(64) NodeIdentity {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t reserved;
  std::uint64_t layout_digest;  // MemoryMap::digest()
  MemoryShape shape;
  NodeId node;
  CycleAnchor started;
};

enum class Table : std::uint8_t {
  kIdentity,
  kService,
  kUnserved,
  kStamps,
  kPlacement,
  kDevices,
  kFailures,
  kFlusher,
  kOrganizer,
  kEvents,
  kWarmer,
  kObjectBoard,
  kDescriptionBoard,
  kPoolBoard,
  kDescriptorRoom,
  kExtendLocks,
  // Tables, each on its own pages.
  kRules,
  kMoves,
  kFetches,
  kArrays,
  kAccounts,
  kSlots,
  kGenerations,
  kTold,
  kEventRings,
  kRequests,
  kObjects,
  kObjectLines,
  kDescriptions,
  kHolds,
  kBlocks,
  kBlockLines,
  kDirtyMap,
  kSmallHints,
  kMiddleHints,
  // One for each tier: of_tier().
  kSlabs,
  kFreeHints = kSlabs + kTiersMax,
  kPageSums = kFreeHints + kTiersMax,
  kCount = kPageSums + kTiersMax
};
inline constexpr unsigned kTables = static_cast<unsigned>(Table::kCount);
static_assert(static_cast<unsigned>(Table::kMiddleHints) + 1 ==
                  static_cast<unsigned>(Table::kSmallHints) + kSizeClasses - 1,
              "a map of hints for each class of carved slabs");

constexpr Table of_tier(Table first, unsigned tier) {
  return static_cast<Table>(static_cast<unsigned>(first) + tier);
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A row of the map.
struct TableRow {
  Table table = Table::kCount;
  const char* name = nullptr;
  std::size_t element_bytes = 0;
  std::uint64_t count = 0;
  std::size_t alignment = 0;
  std::uint64_t offset = 0;  // follows from the rows before

  std::uint64_t bytes() const { return element_bytes * count; }
};

class MemoryMap {
 public:
  explicit MemoryMap(const MemoryShape& shape);

  std::span<const TableRow> rows() const { return rows_; }
  std::uint64_t end() const { return rows_.back().offset + rows_.back().bytes(); }
  std::uint32_t count_of(Table table) const {
    return static_cast<std::uint32_t>(row_of(table).count);
  }
  // A sum over the sizes, counts and alignments of all rows: it is equal only where two builds mean
  // the same memory.
  std::uint64_t digest() const;

  // The first element of a table in the segment that begins at `base`.
  template <typename Element>
  Element* find(std::byte* base, Table table) const {
    const TableRow& row = row_of(table);
    CAIRN_CHECK(row.element_bytes == sizeof(Element));
    CAIRN_CHECK(row.alignment % alignof(Element) == 0);
    return reinterpret_cast<Element*>(base + row.offset);
  }

 private:
  void lay_out();
  const TableRow& row_of(Table table) const {
    const TableRow& row = rows_[static_cast<unsigned>(table) % kTables];
    CAIRN_CHECK(row.table == table);
    return row;
  }

  std::array<TableRow, kTables> rows_;
};

}  // namespace cairn
