// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/memory_map.h"

#include <bit>

#include "base/checksums.h"
#include "base/stamp_clock.h"
#include "memory/arena/client_slot.h"
#include "memory/arena/event_board.h"
#include "memory/arena/event_ring.h"
#include "memory/arena/request_ring.h"
#include "memory/arena/service_board.h"
#include "memory/catalog/block.h"
#include "memory/catalog/description_table.h"
#include "memory/catalog/extend_locks.h"
#include "memory/catalog/flusher_board.h"
#include "memory/catalog/hash_lines.h"
#include "memory/catalog/object_table.h"
#include "memory/catalog/rule_table.h"
#include "memory/catalog/unserved_board.h"
#include "memory/pool/capacity_accounts.h"
#include "memory/tiers/array_board.h"
#include "memory/tiers/descriptor_room.h"
#include "memory/tiers/device_board.h"
#include "memory/tiers/failure_board.h"
#include "memory/tiers/fetch_journal.h"
#include "memory/tiers/move_journal.h"
#include "memory/tiers/organizer_board.h"
#include "memory/tiers/page_sums.h"
#include "memory/tiers/placement_board.h"
#include "memory/tiers/warmer_board.h"

namespace cairn {
namespace {

constexpr std::size_t kLineBytes = 64;

using Word = std::atomic<std::uint64_t>;
constexpr std::uint64_t words_for_bits(std::uint64_t bits) { return bits / 64 + 1; }
static_assert(words_for_bits(63) * 64 >= 64 && words_for_bits(64) * 64 > 64);

template <typename Element>
TableRow board(Table table, const char* name) {
  static_assert(alignof(Element) <= kLineBytes);
  return TableRow{table, name, sizeof(Element), 1, kLineBytes};
}

template <typename Element>
TableRow pages(Table table, const char* name, std::uint64_t count) {
  static_assert(alignof(Element) <= kPageBytes);
  return TableRow{table, name, sizeof(Element), count, kPageBytes};
}

// How many elements the tables have that depend on the sizes of the tiers.
struct Counts {
  std::uint64_t memory_slabs;
  std::uint64_t blocks;
  std::uint64_t objects;
  std::uint64_t object_lines;
  std::uint64_t block_lines;

  explicit Counts(const MemoryShape& shape) {
    std::uint64_t file_slabs = 0;
    for (unsigned tier = 1; tier < kTiersMax; ++tier) file_slabs += shape.slabs(tier);
    memory_slabs = shape.slabs(0);
    const std::uint64_t memory_pages = memory_slabs * kPagesPerBlock;
    blocks = 1 + memory_pages + file_slabs;  // number 0 is nobody's
    CAIRN_CHECK(blocks <= UINT32_MAX);
    objects = shape.objects_max != 0 ? shape.objects_max : memory_pages + file_slabs / 4 + 4096;
    // Seven slots a line: two thirds full when every record is in use.
    object_lines = std::bit_ceil(objects / 5 + 1);
    block_lines = std::bit_ceil(blocks / 4 + 16);
  }
};

}  // namespace

MemoryMap::MemoryMap(const MemoryShape& shape) {
  const Counts counts(shape);
  const TableRow singles[] = {
      board<NodeIdentity>(Table::kIdentity, "identity"),
      board<ServiceBoard>(Table::kService, "service board"),
      board<UnservedBoard>(Table::kUnserved, "unserved board"),
      board<StampClock>(Table::kStamps, "stamp clock"),
      board<PlacementBoard>(Table::kPlacement, "placement board"),
      board<DeviceBoard>(Table::kDevices, "device board"),
      board<FailureBoard>(Table::kFailures, "failure board"),
      board<FlusherBoard>(Table::kFlusher, "flusher board"),
      board<OrganizerBoard>(Table::kOrganizer, "organizer board"),
      board<EventBoard>(Table::kEvents, "event board"),
      board<WarmerBoard>(Table::kWarmer, "warmer board"),
      board<ObjectBoard>(Table::kObjectBoard, "object board"),
      board<DescriptionBoard>(Table::kDescriptionBoard, "description board"),
      board<PoolBoard>(Table::kPoolBoard, "pool board"),
      board<DescriptorRoom>(Table::kDescriptorRoom, "descriptor room"),
      board<ExtendLocks>(Table::kExtendLocks, "extend locks"),
      pages<RuleTable::Bytes>(Table::kRules, "rules", 1),
      pages<MoveJournal::Bytes>(Table::kMoves, "move journal", 1),
      pages<FetchJournal::Bytes>(Table::kFetches, "fetch journal", 1),
      pages<ArrayBoard>(Table::kArrays, "grids of arrays", 1),
      pages<AccountTable>(Table::kAccounts, "accounts", 1),
      pages<ClientSlot>(Table::kSlots, "client slots", shape.clients_max),
      pages<std::atomic<std::uint32_t>>(Table::kGenerations, "generations", shape.clients_max),
      pages<Word>(Table::kTold, "slots that told an event", words_for_bits(shape.clients_max)),
      pages<EventRing>(Table::kEventRings, "event rings", shape.clients_max),
      pages<RequestRing::Table>(Table::kRequests, "request ring", 1),
      pages<Object>(Table::kObjects, "objects", counts.objects),
      pages<HashLine>(Table::kObjectLines, "object lines", counts.object_lines),
      pages<OpenDescription>(Table::kDescriptions, "descriptions", shape.descriptions_max),
      pages<Hold>(Table::kHolds, "holds", shape.holds_max),
      pages<BlockDescriptor>(Table::kBlocks, "block descriptors", counts.blocks),
      pages<HashLine>(Table::kBlockLines, "block lines", counts.block_lines),
      pages<Word>(Table::kDirtyMap, "dirty map", words_for_bits(counts.blocks)),
      pages<Word>(Table::kSmallHints, "slabs of 4 KiB", words_for_bits(counts.memory_slabs)),
      pages<Word>(Table::kMiddleHints, "slabs of 16 KiB", words_for_bits(counts.memory_slabs)),
  };
  static_assert(std::size(singles) == static_cast<unsigned>(Table::kSlabs), "a row for each name");
  std::size_t filled = 0;
  for (const TableRow& row : singles) rows_[filled++] = row;
  for (unsigned tier = 0; tier < kTiersMax; ++tier)
    rows_[filled++] = pages<Word>(of_tier(Table::kSlabs, tier), "slabs", shape.slabs(tier));
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    rows_[filled++] = pages<Word>(of_tier(Table::kFreeHints, tier), "free slabs",
                                  words_for_bits(shape.slabs(tier)));
  }
  const bool are_summed = static_cast<Checksums>(shape.checksums) != Checksums::kOff;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    const std::uint64_t pages_of_tier = std::uint64_t{shape.slabs(tier)} * kPagesPerBlock;
    rows_[filled++] = pages<PageSums::Word>(of_tier(Table::kPageSums, tier), "checksums",
                                            are_summed ? pages_of_tier : 0);
  }
  CAIRN_CHECK(filled == kTables);
  lay_out();
}

// One row behind the other.
void MemoryMap::lay_out() {
  std::uint64_t end = 0;
  for (std::size_t at = 0; at < kTables; ++at) {
    TableRow& row = rows_[at];
    CAIRN_CHECK(row.table == static_cast<Table>(at));
    row.offset = round_up(end, row.alignment);
    end = row.offset + row.bytes();
  }
}

std::uint64_t MemoryMap::digest() const {
  std::uint64_t digest = kLayoutVersion;
  for (const TableRow& row : rows_) {
    for (const std::uint64_t value :
         {std::uint64_t{row.element_bytes}, row.count, std::uint64_t{row.alignment}, row.offset})
      digest = mix_bits(digest + value + 0x9e3779b97f4a7c15ULL);
  }
  return digest;
}

}  // namespace cairn
