// SPDX-License-Identifier: Apache-2.0
// What every tier promises, whatever it is made of. A new member of Tier gets a line in kMembers.
#include "memory/tiers/tier.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memory/tiers/file_tier.h"
#include "memory/tiers/memory_tier.h"
#include "memory/tiers/testing/faulty_tier.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::uint64_t kBuckets = 8;
constexpr std::size_t kBytes = kBuckets * kBlockBytes;

struct alignas(kPageBytes) Blocks {
  std::array<std::byte, kBytes> bytes{};
};

// A member with the memory that it borrows.
struct Made {
  Blocks memory;
  MemoryTier memory_tier;
  FileTier file_tier;
  std::unique_ptr<testing::FaultyTier> faulty_tier;
  const Tier* tier = nullptr;
};

struct Member {
  const char* name;
  TierMedium medium;
  std::unique_ptr<Made> (*make)();
};

std::unique_ptr<Made> make_memory_tier() {
  auto made = std::make_unique<Made>();
  made->memory_tier = MemoryTier(made->memory.bytes.data(), kBytes);
  made->tier = &made->memory_tier;
  return made;
}

std::unique_ptr<Made> make_file(FileTier::Room room) {
  auto made = std::make_unique<Made>();
  auto created = FileTier::create("/var/tmp", PoolIdentity{{1, 2}, 1, kBuckets}, room);
  EXPECT_TRUE(created.is_ok()) << created.status().message();
  if (created) made->file_tier = std::move(*created);
  made->tier = &made->file_tier;
  return made;
}
std::unique_ptr<Made> make_file_tier() { return make_file(FileTier::Room::kTaken); }
std::unique_ptr<Made> make_swap_area() { return make_file(FileTier::Room::kWhenNeeded); }

std::unique_ptr<Made> without_faults(std::unique_ptr<Made> made) {
  made->faulty_tier = std::make_unique<testing::FaultyTier>(*made->tier);
  made->tier = made->faulty_tier.get();
  return made;
}
std::unique_ptr<Made> make_faulty_memory() { return without_faults(make_memory_tier()); }
std::unique_ptr<Made> make_faulty_file() { return without_faults(make_file_tier()); }

const Member kMembers[] = {{"Memory", TierMedium::kMemory, make_memory_tier},
                           {"File", TierMedium::kFile, make_file_tier},
                           {"SwapArea", TierMedium::kFile, make_swap_area},
                           {"MemoryWithoutFaults", TierMedium::kMemory, make_faulty_memory},
                           {"FileWithoutFaults", TierMedium::kFile, make_faulty_file}};

class TierTest : public ::testing::TestWithParam<Member> {
 protected:
  void SetUp() override {
    for (std::size_t at = 0; at < kBytes; ++at)
      pattern_->bytes[at] = static_cast<std::byte>(at / kPageBytes * 7 + at % 251);
  }
  // All of the tier.
  void fill() { ASSERT_EQ(tier().write_pages(TierExtent{0, kBytes}, pattern_->bytes.data()), 0); }
  void expect_pattern(TierExtent extent) {
    std::memset(read_->bytes.data(), 0xee, kBytes);
    ASSERT_EQ(tier().read_pages(extent, read_->bytes.data()), 0);
    EXPECT_EQ(
        std::memcmp(read_->bytes.data(), pattern_->bytes.data() + extent.offset, extent.length), 0)
        << extent.offset << " +" << extent.length;
    EXPECT_TRUE(extent.length == kBytes || read_->bytes[extent.length] == std::byte{0xee})
        << "more was read than was asked for";
  }
  const Tier& tier() const { return *made_->tier; }

  std::unique_ptr<Made> made_ = GetParam().make();
  std::unique_ptr<Blocks> pattern_ = std::make_unique<Blocks>();
  std::unique_ptr<Blocks> read_ = std::make_unique<Blocks>();
};

INSTANTIATE_TEST_SUITE_P(Members, TierTest, ::testing::ValuesIn(kMembers),
                         [](const auto& member) { return std::string(member.param.name); });

TEST_P(TierTest, SaysWhatItIs) {
  EXPECT_EQ(tier().medium(), GetParam().medium);
  EXPECT_EQ(tier().capacity_bytes(), kBytes);
  EXPECT_EQ(MemoryTier().medium(), TierMedium::kNone);
  EXPECT_EQ(FileTier().medium(), TierMedium::kNone);
}

TEST_P(TierTest, IsZeroAtFirst) {
  ASSERT_EQ(tier().read_pages(TierExtent{0, kBytes}, read_->bytes.data()), 0);
  EXPECT_EQ(read_->bytes, Blocks().bytes);
}

TEST_P(TierTest, GivesBackWhatWasWrittenInAnyPiecesOfWholePages) {
  fill();
  expect_pattern(TierExtent{0, kBytes});
  expect_pattern(TierExtent{0, kPageBytes});
  expect_pattern(TierExtent{kBytes - kPageBytes, kPageBytes});
  expect_pattern(TierExtent{3 * kBlockBytes, kBlockBytes});
  expect_pattern(TierExtent{kBlockBytes - kPageBytes, 2 * kBlockBytes});
}

TEST_P(TierTest, AWriteTouchesNothingBesideItsExtent) {
  fill();
  const TierExtent middle{2 * kBlockBytes + kPageBytes, 3 * kPageBytes};
  const Blocks zeros;
  ASSERT_EQ(tier().write_pages(middle, zeros.bytes.data()), 0);
  expect_pattern(TierExtent{0, static_cast<std::size_t>(middle.offset)});
  expect_pattern(TierExtent{middle.end(), static_cast<std::size_t>(kBytes - middle.end())});
  ASSERT_EQ(tier().read_pages(middle, read_->bytes.data()), 0);
  EXPECT_EQ(std::memcmp(read_->bytes.data(), zeros.bytes.data(), middle.length), 0);
}

TEST_P(TierTest, PartsAreTheSameBytesInSeveralPlaces) {
  std::byte* in = pattern_->bytes.data();
  const iovec written[] = {{in, 2 * kPageBytes}, {in + 2 * kPageBytes, kBlockBytes}};
  const TierExtent extent{0, 2 * kPageBytes + kBlockBytes};
  ASSERT_EQ(tier().write_parts(extent, written), 0);
  expect_pattern(extent);
  std::byte* out = read_->bytes.data();
  const iovec parts[] = {{out + 4 * kBlockBytes, kBlockBytes}, {out, 2 * kPageBytes}};
  ASSERT_EQ(tier().read_parts(extent, parts), 0);
  EXPECT_EQ(std::memcmp(out + 4 * kBlockBytes, in, kBlockBytes), 0);
  EXPECT_EQ(std::memcmp(out, in + kBlockBytes, 2 * kPageBytes), 0);
}

TEST_P(TierTest, AnAddressIsWhereTheBytesAre) {
  fill();
  const TierExtent extent{kBlockBytes + 100, 5000};
  std::byte* bytes = tier().address_of(extent);
  ASSERT_EQ(bytes != nullptr, GetParam().medium == TierMedium::kMemory);
  if (bytes == nullptr) return;
  EXPECT_EQ(std::memcmp(bytes, pattern_->bytes.data() + extent.offset, extent.length), 0);
  *bytes = pattern_->bytes[extent.offset] = std::byte{1};
  expect_pattern(TierExtent{kBlockBytes, kBlockBytes});
}

TEST_P(TierTest, ADeviceTakesTheSameBytesAtThePlaceThatIsNamed) {
  const TierExtent extent{5 * kBlockBytes, kBlockBytes};
  const Tier::DevicePlace at = tier().on_device(extent);
  ASSERT_EQ(at.descriptor >= 0, GetParam().medium == TierMedium::kFile);
  if (at.descriptor < 0) return;
  ASSERT_EQ(::pwrite(at.descriptor, pattern_->bytes.data() + extent.offset, extent.length,
                     static_cast<off_t>(at.offset)),
            static_cast<ssize_t>(extent.length));
  expect_pattern(extent);
}

TEST_P(TierTest, APlaceIsCopiedToAndFromMemory) {
  fill();
  Blocks memory;
  const MemoryTier other(memory.bytes.data(), kBytes);
  const TierPlace ours{&tier(), {kBlockBytes, 3 * kPageBytes}};
  const TierPlace theirs{&other, {7 * kBlockBytes, 3 * kPageBytes}};
  ASSERT_EQ(copy_place(ours, theirs), 0);
  EXPECT_EQ(std::memcmp(theirs.address(), pattern_->bytes.data() + kBlockBytes, 3 * kPageBytes), 0);
  std::memset(theirs.address(), 9, 3 * kPageBytes);
  ASSERT_EQ(copy_place(theirs, ours), 0);
  ASSERT_EQ(ours.read(read_->bytes.data()), 0);
  EXPECT_EQ(std::memcmp(read_->bytes.data(), theirs.address(), 3 * kPageBytes), 0);
  expect_pattern(TierExtent{0, kBlockBytes});
}

// The same through a node's memory: one way leads to the bytes of every bucket.
TEST(TierPlaces, EveryBucketHasAPlaceOfItsOwn) {
  MemoryShape shape = testing::memory_only(3 * kBlockBytes);
  shape.tier_bytes[1] = 2 * kBlockBytes;
  shape.tier_bytes[2] = kBlockBytes;
  shape.swap_tier = 2;
  const NodeMemory memory = testing::make_memory(shape);
  Blocks block;
  const std::uint32_t first_file = 1 + 3 * kPagesPerBlock;
  const std::uint32_t buckets[] = {1, 2, 3, first_file, first_file + 1, first_file + 2};
  for (const std::uint32_t bucket : buckets) {
    std::memset(block.bytes.data(), static_cast<int>(bucket), kBlockBytes);
    ASSERT_EQ(memory.place_of(BucketIndex{bucket}, 0, kBlockBytes).write(block.bytes.data()), 0);
  }
  for (const std::uint32_t bucket : buckets) {
    const TierPlace place = memory.place_of(BucketIndex{bucket}, 0, kBlockBytes);
    EXPECT_EQ(place.address() != nullptr, memory.in_memory(BucketIndex{bucket}));
    ASSERT_EQ(place.read(block.bytes.data()), 0);
    EXPECT_EQ(block.bytes[0], static_cast<std::byte>(bucket));
    EXPECT_EQ(block.bytes[kBlockBytes - 1], static_cast<std::byte>(bucket));
  }
  // Neighbours in one operation.
  ASSERT_EQ(
      memory.place_of(BucketIndex{first_file}, kPageBytes, kBlockBytes).read(block.bytes.data()),
      0);
  EXPECT_EQ(block.bytes[0], static_cast<std::byte>(first_file));
  EXPECT_EQ(block.bytes[kBlockBytes - 1], static_cast<std::byte>(first_file + 1));
}

class FaultyTiers : public ::testing::Test {
 protected:
  void write(std::uint64_t page, char byte) {
    std::memset(page_.bytes.data(), byte, kPageBytes);
    ASSERT_EQ(faulty_.write_pages(TierExtent{page * kPageBytes, kPageBytes}, page_.bytes.data()),
              0);
  }
  // What stands at the beginning and at the end of the page.
  std::string ends(std::uint64_t page) {
    EXPECT_EQ(tier_.read_pages(TierExtent{page * kPageBytes, kPageBytes}, page_.bytes.data()), 0);
    return {static_cast<char>(page_.bytes[0]), static_cast<char>(page_.bytes[kPageBytes - 1])};
  }

  std::unique_ptr<Blocks> memory_ = std::make_unique<Blocks>();
  MemoryTier tier_{memory_->bytes.data(), kBytes};
  testing::FaultyTier faulty_{tier_};
  Blocks page_;
};

TEST_F(FaultyTiers, FailAtTheCallsThatWereNamed) {
  faulty_.fail(testing::TierCall::kRead, ENXIO, {2, 1});
  faulty_.shorten(testing::TierCall::kWrite, 100, {2, 1});
  const TierExtent first{0, kPageBytes};
  write(0, 'a');
  EXPECT_EQ(faulty_.read_pages(first, page_.bytes.data()), 0);
  EXPECT_EQ(faulty_.read_pages(first, page_.bytes.data()), -ENXIO);
  std::memset(page_.bytes.data(), 'b', kPageBytes);
  EXPECT_EQ(faulty_.write_pages(first, page_.bytes.data()), -EIO);
  EXPECT_EQ(ends(0), "ba") << "torn";
  write(0, 'b');
  EXPECT_EQ(ends(0), "bb");
}

TEST_F(FaultyTiers, LoseWhatNoFlushHasCovered) {
  std::array<bool, 3> seen{};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomSource random(seed);
    for (std::uint64_t page = 0; page < 3; ++page) write(page, 'a');
    faulty_.begin_forgetting();
    write(0, 'b');
    faulty_.flush();
    write(1, 'b');
    faulty_.cut_power(random);
    EXPECT_EQ(ends(0), "bb");
    EXPECT_EQ(ends(2), "aa");
    const std::string left = ends(1);
    seen[left == "aa" ? 0 : left == "bb" ? 1 : 2] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]) << "vanished, survived and torn";
}

TEST(FileTiers, AreNotMadeWhereStrangersMayWrite) {
  char directory[] = "/tmp/cairn-tier-test-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  ASSERT_EQ(::chmod(directory, 0777), 0);
  const Status status = FileTier::create(directory, PoolIdentity{{1, 2}, 1, 1}).status();
  EXPECT_EQ(status.code(), StatusCode::kDenied);
  EXPECT_NE(status.message().find(directory), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("chmod"), std::string::npos) << status.message();
  ::rmdir(directory);
}

}  // namespace
}  // namespace cairn
