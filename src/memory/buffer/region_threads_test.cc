// SPDX-License-Identifier: Apache-2.0
// A region is kept, read and dropped by several threads at once: for ThreadSanitizer, and who reads
// it gets its bytes or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "memory/backing/region_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/region_identity.h"
#include "memory/buffer/region_keep.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::size_t kRegionBytes = 2 * kBlockBytes;
constexpr int kKeptTimes = 30;

// An actor of a thread's own, which has the region open.
class Holder {
 public:
  Holder(NodeMemory& memory, const StoreStatus& status, const std::byte* bytes)
      : actor_(testing::make_actor(memory)), backing_(status, bytes) {
    actor_.counters = &uncounted_;
    object_ = open_object(actor_, backing_, status, false);
    EXPECT_NE(object_, ObjectIndex::kNone);
  }
  ~Holder() {
    (void)close_object(access(), false);
    actor_.drop_leases();
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  ObjectAccess access() { return {actor_, object_, backing_, nobody_}; }

 private:
  CounterShard uncounted_{};
  Actor actor_;
  RegionBacking backing_;
  NoService nobody_;
  ObjectIndex object_ = ObjectIndex::kNone;
};

TEST(RegionThreads, WhoReadsGetsTheRegionsBytesOrNothing) {
  NodeMemory memory = testing::make_memory(testing::memory_only(4 * testing::kMiB));
  std::vector<std::byte> bytes(kRegionBytes);
  for (std::size_t at = 0; at < kRegionBytes; ++at) bytes[at] = static_cast<std::byte>(at * 7 / 5);
  const StoreStatus status = status_of_region(memory.objects(), {ObjectKind::kFile, {}, {1, 2}},
                                              {{3, 4}, kRegionBytes, FileVersion{5, 6, 7}});
  std::atomic<bool> is_over{false};
  const auto keep = [&] {
    for (int round = 0; round < kKeptTimes; ++round) {
      Holder holder(memory, status, bytes.data());
      EXPECT_TRUE(keep_whole_region(holder.access()));
    }
  };
  const auto read_again = [&] {
    std::vector<std::byte> copy(kRegionBytes);
    while (!is_over.load()) {
      Holder holder(memory, status, nullptr);
      const ssize_t read = read_object(holder.access(), 0, copy.data(), kRegionBytes);
      // A part of it may be gone.
      EXPECT_TRUE(read < 0 || std::equal(copy.begin(), copy.begin() + read, bytes.begin()));
    }
  };
  const auto drop = [&] {
    while (!is_over.load()) {
      Holder holder(memory, status, nullptr);
      (void)drop_blocks(holder.access(), 0, UINT64_MAX, false, PlacementReason::kStagedOut);
      std::this_thread::yield();
    }
  };
  std::thread first(keep);
  std::thread second(keep);
  std::thread reader(read_again);
  std::thread dropper(drop);
  first.join();
  second.join();
  is_over.store(true);
  reader.join();
  dropper.join();
  Holder holder(memory, status, bytes.data());
  EXPECT_TRUE(keep_whole_region(holder.access()));
  std::vector<std::byte> copy(kRegionBytes);
  EXPECT_EQ(read_object(holder.access(), 0, copy.data(), kRegionBytes),
            static_cast<ssize_t>(kRegionBytes));
  EXPECT_EQ(copy, bytes);
}

}  // namespace
}  // namespace cairn
