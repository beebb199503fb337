// SPDX-License-Identifier: Apache-2.0
// All blocks of a file are found by the file's numbers: wherever they are, and at the cost of the
// file and not of the tiers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

// A node with one file that one client has open.
class OneFile {
 public:
  explicit OneFile(std::uint64_t tier_bytes)
      : memory_(testing::make_memory(testing::memory_only(tier_bytes))),
        actor_(testing::make_actor(memory_)),
        fd_(testing::make_unnamed_file()),
        file_(fd_, O_RDWR) {
    service_.memory = &memory_;
    StoreStatus status;
    EXPECT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, file_, status, true);
    EXPECT_NE(index_, ObjectIndex::kNone);
  }
  ~OneFile() {
    actor_.drop_leases();
    close(fd_);
  }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;

  ObjectAccess access() { return ObjectAccess{actor_, index_, file_, service_}; }
  void put(std::uint64_t offset) {
    ASSERT_EQ(write_object(access(), offset, "some", 4), 4) << "at " << offset;
  }
  void drop() { ASSERT_EQ(drop_blocks(access(), 0, UINT64_MAX, true, PlacementReason::kCut), 0); }
  std::uint32_t blocks() { return access().object().blocks.load(); }

  // The shortest of several drops of a block, which nothing has come between.
  std::int64_t drop_ns() {
    std::int64_t shortest = INT64_MAX;
    for (int round = 0; round < 20; ++round) {
      put(100);
      const std::int64_t began = monotonic_ns();
      drop();
      shortest = std::min(shortest, monotonic_ns() - began);
    }
    return shortest;
  }

 private:
  NodeMemory memory_;
  Actor actor_;
  int fd_;
  PosixBacking file_;
  testing::AcceptingService service_;
  ObjectIndex index_{};
};

TEST(ResidentBlocks, AreAllFoundWhateverTheirNumbers) {
  OneFile file(16 * testing::kMiB);
  const std::vector<std::vector<std::uint64_t>> scenes = {
      {},
      {0},
      {1},
      {0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65},
      {5, 70'000, std::uint64_t{UINT32_MAX} - 1},  // more numbers than there are buckets
      {6},                                         // also of a file that once had such
  };
  for (const auto& numbers : scenes) {
    for (const std::uint64_t number : numbers) file.put(number << kBlockShift);
    ASSERT_EQ(file.blocks(), numbers.size());
    file.drop();
    EXPECT_EQ(file.blocks(), 0U);
  }
}

// To look through all of a tier of 8 GiB takes thousands of times as long as to drop one block.
TEST(ResidentBlocks, OfASmallFileCostWhatTheFileHasAndNotTheTier) {
  OneFile small(16 * testing::kMiB);
  OneFile large(8192 * testing::kMiB);
  EXPECT_LT(large.drop_ns(), 100 * small.drop_ns());
}

}  // namespace
}  // namespace cairn
