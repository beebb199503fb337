// SPDX-License-Identifier: Apache-2.0
// The checksums of a file tier, by way of the tier.
#include "memory/tiers/page_sums.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "memory/tiers/page_hash.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr auto kBelow = static_cast<TierId>(1);
constexpr std::size_t kSlabs = 4;

struct alignas(kPageBytes) Block {
  std::array<unsigned char, kBlockBytes> bytes{};
};

class PageSumsTest : public ::testing::Test {
 protected:
  void create(Checksums checksums) {
    MemoryShape shape = testing::memory_only(kSlabs * kBlockBytes);
    shape.tier_bytes[1] = kSlabs * kBlockBytes;
    shape.checksums = static_cast<std::uint32_t>(checksums);
    memory_ = testing::make_memory(shape);
    for (std::size_t at = 0; at < kBlockBytes; ++at)
      written_.bytes[at] = static_cast<unsigned char>(at / kPageBytes * 31 + at % 253);
    ASSERT_EQ(tier().write_pages(kBlock, written_.bytes.data()), 0);
  }
  const Tier& tier() const { return memory_.tier(kBelow); }
  // The device has another page than it was given.
  void break_page(std::size_t page) {
    Block other;
    other.bytes.fill(0xa5);
    const TierExtent extent{kBlock.offset + page * kPageBytes, kPageBytes};
    const Tier::DevicePlace place = tier().on_device(extent);
    ASSERT_EQ(
        pwrite(place.descriptor, other.bytes.data(), kPageBytes, static_cast<off_t>(place.offset)),
        static_cast<ssize_t>(kPageBytes));
  }
  int read(std::size_t page) {
    return tier().read_pages({kBlock.offset + page * kPageBytes, kPageBytes}, read_.bytes.data());
  }

  static constexpr TierExtent kBlock{kBlockBytes, kBlockBytes};
  NodeMemory memory_;
  Block written_;
  Block read_;
};

TEST_F(PageSumsTest, APageThatIsNotWhatWasWrittenIsNotRead) {
  create(Checksums::kMovement);
  ASSERT_EQ(tier().read_pages(kBlock, read_.bytes.data()), 0);
  EXPECT_EQ(read_.bytes, written_.bytes);
  break_page(5);
  EXPECT_EQ(tier().read_pages(kBlock, read_.bytes.data()), -EBADMSG);
  for (std::size_t page = 0; page < kPagesPerBlock; ++page)
    EXPECT_EQ(read(page), page == 5 ? -EBADMSG : 0) << page;
  ASSERT_EQ(tier().write_pages(kBlock, written_.bytes.data()), 0);
  EXPECT_EQ(read(5), 0) << "written anew";
}

TEST_F(PageSumsTest, APageWhoseWriterDiedCountsAsGood) {
  create(Checksums::kMovement);
  tier().forget_sums({kBlock.offset + 5 * kPageBytes, kPageBytes});
  break_page(5);
  EXPECT_EQ(read(5), 0);
  break_page(6);
  EXPECT_EQ(read(6), -EBADMSG);
}

TEST_F(PageSumsTest, NothingIsComparedWhereNothingIsKept) {
  create(Checksums::kOff);
  EXPECT_FALSE(memory_.sums(kBelow).are_kept());
  break_page(5);
  EXPECT_EQ(read(5), 0);
}

TEST_F(PageSumsTest, EachKindOfProcessorHasTheSameChecksum) {
  create(Checksums::kMovement);
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the processor has one kind only";
  for (std::size_t page = 0; page < kPagesPerBlock; ++page) {
    const unsigned char* bytes = &written_.bytes[page * kPageBytes];
    EXPECT_EQ(page_hash(bytes), page_hash_avx2(bytes));
  }
#endif
}

}  // namespace
}  // namespace cairn
