// SPDX-License-Identifier: Apache-2.0
// Memory in which any word may be anything: a takeover ends, crashes nothing, and after a few of
// them there is nothing more to find. CAIRN_SEED repeats a run.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

#include "service/recovery/testing/left_memory.h"

namespace cairn::node {
namespace {

constexpr unsigned kRounds = 300;
// What one finds may have hidden something from it.
constexpr int kServicesMax = 4;

// The tables that the test writes into: all but the generations and slots, which name the living,
// and the identity, which a takeover checks first.
constexpr Table kTables[] = {
    Table::kService,     Table::kUnserved,     Table::kStamps,         Table::kPlacement,
    Table::kDevices,     Table::kFlusher,      Table::kOrganizer,      Table::kEvents,
    Table::kWarmer,      Table::kPoolBoard,    Table::kDescriptorRoom, Table::kExtendLocks,
    Table::kRules,       Table::kMoves,        Table::kFetches,        Table::kAccounts,
    Table::kTold,        Table::kRequests,     Table::kObjects,        Table::kObjectLines,
    Table::kHolds,       Table::kDescriptions, Table::kBlocks,         Table::kBlockLines,
    Table::kMiddleHints, Table::kSmallHints,   Table::kDirtyMap,       Table::kSlabs,
    Table::kFreeHints};

class TakeoverFuzz : public testing::LeftMemory {
 protected:
  // A word that means something more often than chance would have it.
  std::uint64_t word(std::mt19937_64& random) {
    switch (random() % 5) {
      case 0:
        return 0;
      case 1:
        return ~std::uint64_t{0};
      case 2:
        return random() % 64;
      case 3:
        // A dead service's name, low and high.
        return std::uint64_t{Owner(ClientSlot::kOfService, 0).bits()} << random() % 2 * 40;
      default:
        return random();
    }
  }
  void play(std::uint64_t seed);
  void scramble(std::mt19937_64& random) {
    const MemoryMap map(memory_.shape());
    const unsigned words = 1 + random() % 64;
    for (unsigned count = 0; count < words; ++count) {
      const Table table = kTables[random() % std::size(kTables)];
      const TableRow& row = map.rows()[static_cast<unsigned>(table)];
      // The first elements, most of the time, which are in use.
      const std::uint64_t begin = std::min<std::uint64_t>(row.bytes(), 4096);
      const std::uint64_t most = random() % 4 == 0 ? row.bytes() : begin;
      if (most < sizeof(std::uint64_t)) continue;
      const std::uint64_t at = random() % (most / 8) * 8;
      const std::uint64_t value = word(random);
      std::memcpy(memory_.control().base() + row.offset + at, &value, sizeof value);
    }
  }
};

void TakeoverFuzz::play(std::uint64_t seed) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (unsigned round = 0; round < kRounds; ++round) {
    for (std::uint32_t number = 0; number < 4; ++number) {
      if (round == 0) write(number, 'a');
    }
    scramble(random);
    Takeover last;
    for (int service = 0; service < kServicesMax; ++service) {
      last = taken_over();
      if (last.mended + last.locks + last.holds + last.swept.buckets_freed == 0) break;
    }
    EXPECT_EQ(last.mended, 0U) << "round " << round;
    EXPECT_EQ(last.locks + last.holds + last.swept.buckets_freed, 0U) << "round " << round;
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      const BucketPool& pool = memory_.pool(static_cast<TierId>(tier));
      EXPECT_EQ(pool.free_slabs(), pool.count_free_slabs()) << "round " << round;
    }
    if (HasFailure()) return;
  }
}

TEST_F(TakeoverFuzz, AnyWordMayBeAnything) {
  const char* given = std::getenv("CAIRN_SEED");
  play(given != nullptr ? std::strtoull(given, nullptr, 10)
                        : static_cast<std::uint64_t>(::time(nullptr)));
}

// The word in a lock that a takeover needs came to be the name of a slot that nobody had.
TEST_F(TakeoverFuzz, ALockInTheNameOfNobodyIsNotWaitedFor) { play(1795888940); }

}  // namespace
}  // namespace cairn::node
