// SPDX-License-Identifier: Apache-2.0
// Who looks for a block while it moves: each step of a mover at each point of a search, of a walk
// over all blocks, and of the quick look of a flush.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "memory/catalog/block_directory.h"
#include "memory/catalog/hash_lines.h"
#include "memory/catalog/testing/block_probe.h"

namespace cairn {
namespace {

// Calls run(plan) for every way to spread `steps` over `points`: plan[p] of them come at point p.
void for_each_plan(unsigned steps, unsigned points,
                   const std::function<void(const std::vector<unsigned>&)>& run) {
  std::vector<unsigned> plan(points, 0);
  const std::function<void(unsigned, unsigned)> fill = [&](unsigned point, unsigned left) {
    if (point == points) return run(plan);
    for (plan[point] = 0; plan[point] <= left; ++plan[point]) fill(point + 1, left - plan[point]);
    plan[point] = 0;
  };
  fill(0, steps);
}

constexpr std::uint32_t kOne = 1;
constexpr std::uint32_t kOther = 2;
constexpr std::uint32_t kKey = 77;

// A key in a table whose mover takes it from one record to another and back, again and again. Each
// step is one atomic store.
class MovingKey {
 public:
  explicit MovingKey(unsigned keys_before) {
    for (std::uint32_t key = 0; key < keys_before; ++key) {
      // The same tag: only their records tell them from the one that the test looks for.
      hash_.insert_locked(kPosition, 10 + key);
    }
    hash_.insert_locked(kPosition, kOne);
    keys_[kOne] = kKey;
  }

  static constexpr unsigned kStepsThereAndBack = 6;
  void step() {
    const bool is_back = next_ % kStepsThereAndBack >= 3;
    const std::uint32_t from = is_back ? kOther : kOne;
    const std::uint32_t to = is_back ? kOne : kOther;
    switch (next_++ % 3) {
      case 0:
        keys_[to] = kKey;
        break;
      case 1:
        ASSERT_TRUE(hash_.replace_locked(kPosition, from, to));
        break;
      default:
        keys_[from] = 0;
    }
  }

  // Looks for the key, with so many steps of the mover before each look at a record.
  std::uint32_t find_beside(const std::vector<unsigned>& plan) {
    unsigned point = 0;
    return hash_.find(kPosition, [&](std::uint32_t value) {
      for (unsigned steps = point < plan.size() ? plan[point] : 0; steps > 0; --steps) step();
      ++point;
      return value < keys_.size() && keys_[value] == kKey;
    });
  }

 private:
  static constexpr HashPosition kPosition{1, 42, 0};
  static constexpr std::uint64_t kLines = 8;
  std::unique_ptr<HashLine[]> lines_{new HashLine[kLines]};
  HashLines hash_{lines_.get(), kLines};
  std::array<std::uint32_t, 3> keys_{};
  unsigned next_ = 0;
};

TEST(BlockMoves, ASearchFindsTheKeyWhateverItsMoverDoesMeanwhile) {
  // The last of them send the key to a line behind its own.
  for (const unsigned keys_before : {0u, 1u, 3u, 6u, 7u, 9u}) {
    constexpr unsigned kMoves = 2;
    const unsigned points = std::min(keys_before + 4, 8u);
    for_each_plan(kMoves * MovingKey::kStepsThereAndBack, points,
                  [&](const std::vector<unsigned>& plan) {
                    // Points before the key's own record are reached one by one.
                    std::vector<unsigned> shifted(keys_before > 4 ? keys_before - 4 : 0, 0);
                    shifted.insert(shifted.end(), plan.begin(), plan.end());
                    MovingKey key(keys_before);
                    const std::uint32_t found = key.find_beside(shifted);
                    ASSERT_TRUE(found == kOne || found == kOther)
                        << "behind " << keys_before << " others: " << testing::PrintToString(plan);
                  });
  }
}

class BlocksThatMove : public testing::Test {
 protected:
  static constexpr std::uint32_t kBuckets = 256;
  static constexpr std::uint64_t kLines = 64;
  static constexpr auto kObject = static_cast<ObjectIndex>(5);

  void take(std::uint32_t bucket, std::uint32_t number) {
    probe(bucket).lock_as(self_);
    probe(bucket).set_identity(kObject, static_cast<BlockNumber>(number));
  }
  void place(std::uint32_t bucket, std::uint32_t number) {
    take(bucket, number);
    const auto index = static_cast<BucketIndex>(bucket);
    ASSERT_EQ(directory_.publish(index, self_, table_), index);
    probe(bucket).end_lock_as(self_);
  }
  // As a mover does it, but for the bytes.
  void move(std::uint32_t from, std::uint32_t to, std::uint32_t number) {
    probe(from).lock_as(self_);
    take(to, number);
    probe(to).set_pages(kAllPages, block(from).dirty_pages());
    ASSERT_TRUE(directory_.move(static_cast<BucketIndex>(from), static_cast<BucketIndex>(to), self_,
                                table_));
    probe(to).end_lock_as(self_);
    probe(from).clear_identity();
    probe(from).set_pages(0, 0);
    probe(from).end_lock_as(self_);
  }
  BlockProbe probe(std::uint32_t bucket) { return BlockProbe(descriptors_[bucket]); }
  BlockDescriptor& block(std::uint32_t bucket) { return descriptors_[bucket]; }

  std::unique_ptr<std::atomic<std::uint32_t>[]> generations_{new std::atomic<std::uint32_t>[16]()};
  OwnerTable table_{generations_.get(), 16};
  Owner self_ = Owner(1, 0);
  std::unique_ptr<HashLine[]> lines_{new HashLine[kLines]};
  std::unique_ptr<BlockDescriptor[]> descriptors_{new BlockDescriptor[kBuckets]};
  BlockDirectory directory_{HashLines(lines_.get(), kLines), descriptors_.get(), kBuckets};
};

// One that goes by the buckets misses what moves from those ahead to those behind.
TEST_F(BlocksThatMove, NoneSlipsPastAWalkOverAllOfThem) {
  constexpr std::uint32_t kCount = 40;
  for (std::uint32_t number = 0; number < kCount; ++number) place(100 + number, number);
  for (std::uint32_t moved_at = 0; moved_at < kCount; ++moved_at) {
    std::set<std::uint32_t> seen;
    const bool is_up = moved_at % 2 == 0;
    directory_.for_each_block([&](ObjectIndex object, BlockNumber number) {
      ASSERT_EQ(object, kObject);
      if (seen.size() == moved_at) {
        for (std::uint32_t other = 0; other < kCount; ++other)
          move(is_up ? 100 + other : 1 + other, is_up ? 1 + other : 100 + other, other);
      }
      seen.insert(raw(number));
    });
    EXPECT_EQ(seen.size(), kCount) << "all moved when " << moved_at << " had been seen";
  }
}

TEST_F(BlocksThatMove, ABucketThatABlockHasLeftSaysNothingOfIt) {
  const auto number = static_cast<BlockNumber>(7);
  place(1, 7);
  EXPECT_TRUE(block(1).is_clean_place_of(kObject, number));
  probe(1).set_pages(1, 1);
  EXPECT_FALSE(block(1).is_clean_place_of(kObject, number));
  move(1, 2, 7);
  EXPECT_FALSE(block(1).is_clean_place_of(kObject, number)) << "the dirty page is elsewhere";
  EXPECT_FALSE(block(2).is_clean_place_of(kObject, number));
  probe(2).set_pages(1, 0);
  EXPECT_TRUE(block(2).is_clean_place_of(kObject, number));
  probe(2).lock_as(self_);
  EXPECT_FALSE(block(2).is_clean_place_of(kObject, number)) << "somebody is writing it";
  probe(2).end_lock_as(self_);
}

// The mover died between the change of the directory and that of the old descriptor. The process
// that takes its lock over ends the move, in the middle of another one's search.
TEST_F(BlocksThatMove, AMoveThatIsEndedForADeadOneIsSeenBySearches) {
  place(1, 7);
  const auto number = static_cast<BlockNumber>(7);
  probe(1).lock_as(self_);
  take(2, 7);
  ASSERT_TRUE(
      directory_.move(static_cast<BucketIndex>(1), static_cast<BucketIndex>(2), self_, table_));
  directory_.count_arrival(static_cast<BucketIndex>(1));
  probe(1).clear_identity();
  EXPECT_EQ(directory_.find(kObject, number), static_cast<BucketIndex>(2));
}

}  // namespace
}  // namespace cairn
