// SPDX-License-Identifier: Apache-2.0
// Reads and writes of one file where a tier below RAM has some of its blocks, or RAM has no room.
#include "memory/buffer/file_tier_io.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "memory/buffer/testing/object_on_tiers.h"
#include "memory/tiers/promotion_bar.h"
#include "memory/tiers/testing/faulty_tier.h"

namespace cairn {
namespace {

using testing::Tiers;
using testing::Transfers;

class FileTierIo : public testing::ObjectOnTiers {
 protected:
  bool is_taken_away_ = false;  // a buffer, while it is written
};

TEST_P(FileTierIo, NewBlocksGoWhereTheFileBelongs) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  std::vector<unsigned char> block(kBlockBytes, 7);
  ASSERT_EQ(write_object(access(), 0, block.data(), block.size()),
            static_cast<ssize_t>(block.size()));
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  ASSERT_EQ(write_object(access(), 100, block.data(), 10), 10);
  std::vector<unsigned char> read(kBlockBytes);
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, block);
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1)) << "neither a write nor a read moves it up";
}

TEST_P(FileTierIo, LargeRequestsToAFileTierStayLarge) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  constexpr std::size_t kBytes = 8 * kBlockBytes;
  auto* pages = static_cast<unsigned char*>(std::aligned_alloc(kPageBytes, 2 * kBytes));
  std::mt19937_64 random(5);
  for (std::size_t at = 0; at < kBytes; ++at) pages[at] = static_cast<unsigned char>(random());
  std::vector<unsigned char> unaligned(kBytes + 1);
  // The library that counts opens a file of its own.
  constexpr std::uint64_t kCallsMax = 8;

  const Transfers before = Transfers::now();
  ASSERT_EQ(write_object(access(), 0, pages, kBytes), static_cast<ssize_t>(kBytes));
  const Transfers written = Transfers::now();
  unsigned char* copy = pages + kBytes;
  ASSERT_EQ(read_object(access(), 0, copy, kBytes), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(std::memcmp(copy, pages, kBytes), 0);
  ASSERT_EQ(read_object(access(), 0, unaligned.data() + 1, kBytes), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(std::memcmp(unaligned.data() + 1, pages, kBytes), 0);
  const Transfers read = Transfers::now();
  // It is one; block by block they would be eight. A sanitizer looks at what is called for the
  // first time with a few writes of its own.
  EXPECT_LT(written.writes - before.writes, kBytes / kBlockBytes);
  EXPECT_LE(read.reads - written.reads, 2 + kCallsMax);
  EXPECT_EQ(actor_.counters->get(hit_bytes_counter(static_cast<TierId>(1))), 2 * kBytes);

  // From the middle of a page to the middle of another one, and beyond the end.
  ASSERT_EQ(write_object(access(), kBytes, pages, 777), 777);
  constexpr std::size_t kAt = kBlockBytes + 1234;
  const auto expected = static_cast<ssize_t>(kBytes + 777 - kAt);
  ASSERT_EQ(read_object(access(), kAt, copy, kBytes), expected);
  EXPECT_EQ(std::memcmp(copy, pages + kAt, kBytes - kAt), 0);
  EXPECT_EQ(std::memcmp(copy + (kBytes - kAt), pages, 777), 0);
  std::free(pages);
}

// A file tier that something happens beside, between a write and the look at its bytes for their
// checksums.
class DisturbedTier final : public Tier {
 public:
  DisturbedTier(const Tier& other, std::function<void()> disturb)
      : other_(other), disturb_(std::move(disturb)) {}

  TierMedium medium() const override { return other_.medium(); }
  std::uint64_t capacity_bytes() const override { return other_.capacity_bytes(); }
  std::byte* address_of(TierExtent extent) const override { return other_.address_of(extent); }
  DevicePlace on_device(TierExtent extent) const override { return other_.on_device(extent); }
  bool keeps_sums() const override { return other_.keeps_sums(); }

 private:
  int do_read(TierExtent extent, std::span<const iovec> parts) const override {
    return other_.read_parts(extent, parts);
  }
  int do_write(TierExtent extent, std::span<const iovec> parts) const override {
    other_.forget_sums(extent);
    const DevicePlace at = on_device(extent);
    EXPECT_EQ(::pwritev(at.descriptor, parts.data(), static_cast<int>(parts.size()),
                        static_cast<off_t>(at.offset)),
              static_cast<ssize_t>(extent.length));
    disturb_();
    other_.note_sums(extent, parts);
    return 0;
  }

  const Tier& other_;
  const std::function<void()> disturb_;
};

// Another thread of the program that changes the buffer meanwhile gets the bytes of either moment,
// and one that takes it away harms nobody but itself.
TEST_P(FileTierIo, TheBufferOfAWriteIsTheProgramsAlsoWhileItIsWritten) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  constexpr std::size_t kBytes = 4 * kBlockBytes;
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const pages = static_cast<unsigned char*>(mapped);
  std::memset(pages, 7, kBytes);
  const DisturbedTier tier(memory_.tier(static_cast<TierId>(1)), [&] {
    pages[kPageBytes + 5] = 8;
    ::mprotect(mapped, kBytes, is_taken_away_ ? PROT_NONE : PROT_READ | PROT_WRITE);
  });
  const testing::TierStandIn stand_in(memory_, tier);
  for (const bool is_taken_away : {false, true}) {
    is_taken_away_ = is_taken_away;
    const std::uint64_t offset = is_taken_away ? kBytes : 0;
    ASSERT_EQ(write_object(access(), offset, pages, kBytes), static_cast<ssize_t>(kBytes));
    std::vector<unsigned char> read(kBytes);
    ASSERT_EQ(read_object(access(), offset, read.data(), kBytes), static_cast<ssize_t>(kBytes));
    EXPECT_TRUE(read[kPageBytes + 5] == 7 || read[kPageBytes + 5] == 8);
    EXPECT_EQ(std::count(read.begin(), read.end(), 7), kBytes - (read[kPageBytes + 5] == 8));
  }
  EXPECT_EQ(memory_.failure_board().tiers[1].broken.load(), 0U);
  ::munmap(mapped, kBytes);
}

TEST_P(FileTierIo, AFileTierThatTakesNothingIsPassedOver) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  // The same file, for reading only.
  const int tier_fd = memory_.tier(static_cast<TierId>(1)).on_device({}).descriptor;
  const int read_only = open(("/proc/self/fd/" + std::to_string(tier_fd)).c_str(), O_RDONLY);
  ASSERT_GE(read_only, 0);
  ASSERT_EQ(dup2(read_only, tier_fd), tier_fd);
  close(read_only);
  std::vector<unsigned char> data(5 * kBlockBytes + 100, 9);
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(access().object().blocks.load(), 0u);
  EXPECT_EQ(access().object().dirty_blocks.load(), 0u);
  std::vector<unsigned char> stored(data.size());
  ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 0), static_cast<ssize_t>(stored.size()));
  EXPECT_EQ(stored, data);
}

TEST_P(FileTierIo, AFullTierIsPassedOver) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  const unsigned blocks = GetParam().memory_slabs + GetParam().file_slabs / 2;
  std::vector<unsigned char> data(std::size_t{blocks} * kBlockBytes);
  std::mt19937_64 random(3);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(actor_.counters->get(Counter::kWriteThroughBytes), 0u);
  EXPECT_EQ(access().object().blocks.load(), blocks);
  EXPECT_EQ(tier_of(blocks - 1), static_cast<TierId>(1));
  std::vector<unsigned char> read(data.size());
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
}

// With RAM short of room, only what is used more often than what had to leave moves up.
TEST_P(FileTierIo, AScanIsReadWhereItLies) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs == 0) GTEST_SKIP() << "one tier";
  const auto file_tier = static_cast<TierId>(1);
  ObjectHandling handling;
  handling.home = file_tier;
  access().object().set_handling(handling);
  std::vector<unsigned char> block(kBlockBytes, 7);
  ASSERT_EQ(write_object(access(), 0, block.data(), block.size()),
            static_cast<ssize_t>(block.size()));
  access().object().set_handling(ObjectHandling());
  OrganizerBoard& board = memory_.organizer_board();
  board.roomy_slabs.store(GetParam().memory_slabs);
  PromotionBar::raise(board, 2, monotonic_coarse_ms());
  std::vector<unsigned char> read(kBlockBytes);
  const auto read_all = [&] {
    ASSERT_EQ(read_object(access(), 0, read.data(), read.size()),
              static_cast<ssize_t>(read.size()));
    ASSERT_EQ(read, block);
  };
  read_all();
  EXPECT_EQ(tier_of(0), file_tier) << "nobody has come back to it";
  read_all();
  EXPECT_EQ(tier_of(0), file_tier) << "what had to leave was used as often";
  PromotionBar::raise(board, 2, monotonic_coarse_ms() - 2 * PromotionBar::kHoldsMs);
  read_all();
  EXPECT_EQ(tier_of(0), TierId::kMemory) << "the bar has fallen";
}

// The second piece of a block brings the rest of it.
TEST_P(FileTierIo, PiecesOfABlockInAFileTierAreReadOnce) {
  if (GetParam().file_slabs == 0) GTEST_SKIP() << "one tier";
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  access().object().set_handling(handling);
  std::vector<unsigned char> data(2 * kBlockBytes);
  std::mt19937_64 random(6);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  std::array<unsigned char, kPageBytes> piece;
  const auto read_pieces = [&] {
    for (std::size_t at = 0; at < data.size(); at += piece.size()) {
      ASSERT_EQ(read_object(access(), at, piece.data(), piece.size()),
                static_cast<ssize_t>(piece.size()));
      ASSERT_EQ(std::memcmp(piece.data(), data.data() + at, piece.size()), 0) << at;
    }
  };
  const Transfers before = Transfers::now();
  read_pieces();
  // One for the first piece, one for each block; the rest are the counting library's.
  EXPECT_LE(Transfers::now().reads - before.reads, 3u + 8);
  // Sequential reads bring more at once: 1, 2, 4 blocks and the rest.
  std::vector<unsigned char> many(9 * kBlockBytes);
  for (unsigned char& byte : many) byte = static_cast<unsigned char>(random());
  ASSERT_EQ(write_object(access(), 0, many.data(), many.size()), static_cast<ssize_t>(many.size()));
  data = many;
  const Transfers before_many = Transfers::now();
  read_pieces();
  EXPECT_LE(Transfers::now().reads - before_many.reads, 6u + 2);
  // A write of another thread is seen at once.
  Actor other = make_actor();
  const ObjectAccess others{other, index_, *file_, service_};
  data[kBlockBytes + 5] ^= 0xff;
  ASSERT_EQ(write_object(others, kBlockBytes + 5, data.data() + kBlockBytes + 5, 1), 1);
  other.drop_leases();
  read_pieces();
}

// With RAM full, a block that is written in pieces waits for the organizer's next move, and so does
// a block that the plan wants in RAM.
TEST_P(FileTierIo, PiecesAndWhatThePlanWantsInMemoryWaitForRoom) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs == 0) GTEST_SKIP() << "one tier";
  std::vector<unsigned char> block(kBlockBytes, 3);
  for (unsigned number = 0; number < GetParam().memory_slabs; ++number) {
    ASSERT_EQ(write_object(access(), number * kBlockBytes, block.data(), block.size()),
              static_cast<ssize_t>(block.size()));
  }
  ASSERT_EQ(sync_object(access(), false, nullptr), 0);
  std::uint32_t next = GetParam().memory_slabs;
  const auto write_while_room_is_made = [&](std::size_t length, std::uint32_t victim_number) {
    actor_.drop_leases();
    ASSERT_EQ(memory_.pool(TierId::kMemory).free_slabs(), 0u);
    Bell& bell = memory_.organizer_board().bell;
    const std::uint32_t heard = bell.listen();
    bell.announce();
    std::thread organizer([&] {
      while (bell.listen() == heard) std::this_thread::yield();
      Actor actor = make_actor();
      LockedBlock victim = lock_resident(actor, index_, static_cast<BlockNumber>(victim_number));
      UnclaimedBlock unclaimed(victim);
      discard_block(actor, std::move(unclaimed), PlacementReason::kNone);
      actor.drop_leases();
    });
    ASSERT_EQ(write_object(access(), next * kBlockBytes, block.data(), length),
              static_cast<ssize_t>(length));
    organizer.join();
    EXPECT_EQ(tier_of(next++), TierId::kMemory) << length << " bytes";
  };
  write_while_room_is_made(100, 0);
  memory_.placement_board().makes_room.store(1);
  write_while_room_is_made(kBlockBytes, 1);
}

// With RAM full, a read from the store fills the next tier for the next time.
TEST_P(FileTierIo, AMissFillsTheTierThatHasRoom) {
  if (GetParam().file_slabs == 0 || GetParam().memory_slabs != 0) GTEST_SKIP() << "has RAM";
  std::vector<unsigned char> data(100'000, 5);
  ASSERT_EQ(pwrite(fd_, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  access().object().size.store(data.size());
  access().object().store_size.store(data.size());
  std::vector<unsigned char> read(data.size());
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
  EXPECT_EQ(tier_of(1), static_cast<TierId>(1));
  const std::uint64_t misses = actor_.counters->get(Counter::kMissBytes);
  std::fill(read.begin(), read.end(), 0);
  ASSERT_EQ(read_object(access(), 0, read.data(), read.size()), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, data);
  EXPECT_EQ(actor_.counters->get(Counter::kMissBytes), misses);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FileTierIo,
                         ::testing::Values(Tiers{4, 0}, Tiers{16, 0}, Tiers{64, 0}, Tiers{8, 32},
                                           Tiers{0, 32}));

}  // namespace
}  // namespace cairn
