// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/memory_map.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "memory/tiers/organizer_board.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

MemoryShape some_shape() {
  MemoryShape shape;
  shape.tier_bytes[0] = 48 * kBlockBytes;
  shape.tier_bytes[1] = 100 * kBlockBytes;
  shape.tier_bytes[4] = kBlockBytes;
  shape.clients_max = 7;
  shape.objects_max = 33;
  return shape;
}

TEST(MemoryMap, TablesLieOneBehindTheOtherAndNeverOverlap) {
  for (const MemoryShape& shape : {MemoryShape(), some_shape(), testing::memory_only(4096)}) {
    const MemoryMap map(shape);
    std::uint64_t end = 0;
    for (const TableRow& row : map.rows()) {
      EXPECT_GE(row.offset, end) << row.name;
      EXPECT_LT(row.offset - end, row.alignment) << row.name << " begins with a gap";
      EXPECT_EQ(row.offset % row.alignment, 0U) << row.name;
      end = row.offset + row.bytes();
    }
    EXPECT_EQ(map.end(), end);
  }
}

TEST(MemoryMap, EveryBoardHasLinesOfItsOwnAndEveryTablePages) {
  const MemoryMap map(some_shape());
  for (const TableRow& row : map.rows()) {
    const bool is_board = row.table < Table::kRules;
    EXPECT_EQ(row.alignment, is_board ? 64U : kPageBytes) << row.name;
  }
}

TEST(MemoryMap, CountsFollowFromTheShape) {
  const MemoryMap map(some_shape());
  EXPECT_EQ(map.count_of(Table::kBlocks), 1U + 48 * kPagesPerBlock + 100 + 1);
  EXPECT_EQ(map.count_of(Table::kObjects), 33U);
  EXPECT_EQ(map.count_of(Table::kSlots), 7U);
  EXPECT_EQ(map.count_of(of_tier(Table::kSlabs, 0)), 48U);
  EXPECT_EQ(map.count_of(of_tier(Table::kSlabs, 4)), 1U);
  EXPECT_EQ(map.count_of(of_tier(Table::kSlabs, 7)), 0U);
}

TEST(MemoryMap, TheDigestTellsShapesApart) {
  std::set<std::uint64_t> digests;
  MemoryShape shape = some_shape();
  EXPECT_EQ(MemoryMap(shape).digest(), MemoryMap(shape).digest());
  digests.insert(MemoryMap(shape).digest());
  shape.holds_max += 1;
  digests.insert(MemoryMap(shape).digest());
  shape.tier_bytes[1] += kBlockBytes;
  digests.insert(MemoryMap(shape).digest());
  EXPECT_EQ(digests.size(), 3U);
}

int failed_checks;

TEST(MemoryMap, ATableOfOtherElementsIsNotFound) {
  const MemoryMap map(some_shape());
  std::vector<std::byte> segment(map.end());
  failed_checks = 0;
  const CheckHandler before =
      set_check_handler([](const char*, const char*, int) { ++failed_checks; });
  auto* board = map.find<OrganizerBoard>(segment.data(), Table::kOrganizer);
  EXPECT_EQ(failed_checks, 0);
  EXPECT_GT(reinterpret_cast<std::byte*>(board), segment.data());
  (void)map.find<std::uint32_t>(segment.data(), Table::kOrganizer);
  EXPECT_EQ(failed_checks, 1);
  set_check_handler(before);
}

// Two builds of one version whose structs differ.
TEST(MemoryMap, AMemoryOfAnotherLayoutIsNotAttached) {
  const MemoryShape shape = testing::memory_only(16 * kBlockBytes);
  NodeMemory memory = testing::make_memory(shape);
  const auto attached = [&] {
    return NodeMemory::attach(memory.shape(), ::dup(memory.control().fd()),
                              ::dup(memory.data().fd()), {});
  };
  EXPECT_TRUE(attached().is_ok());
  auto* identity = reinterpret_cast<NodeIdentity*>(memory.control().base());
  identity->layout_digest ^= 1;
  EXPECT_EQ(attached().status().code(), StatusCode::kIncompatible);
  identity->layout_digest ^= 1;
  identity->layout_version += 1;
  EXPECT_EQ(attached().status().code(), StatusCode::kIncompatible);
  identity->layout_version -= 1;
  EXPECT_TRUE(attached().is_ok());
}

}  // namespace
}  // namespace cairn
