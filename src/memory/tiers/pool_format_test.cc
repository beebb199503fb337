// SPDX-License-Identifier: Apache-2.0
// Superblocks of pool files: the right one is known again, every other one is refused.
#include "memory/tiers/pool_format.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "memory/tiers/file_tier.h"

namespace cairn {
namespace {

constexpr PoolIdentity kOurs{{0x1234, 0x5678}, 2, 4};

TEST(PoolFormat, ASuperblockIsWhatWasWritten) {
  const PoolPage page = make_superblock(kOurs);
  EXPECT_TRUE(check_superblock(page, kOurs).is_ok());
  EXPECT_EQ(std::memcmp(page.bytes.data(), "CCPOOL01", 8), 0);
}

TEST(PoolFormat, EveryGarbledByteIsNoticed) {
  for (std::size_t at = 0; at < kPageBytes; ++at) {
    PoolPage page = make_superblock(kOurs);
    page.bytes[at] ^= std::byte{0x40};
    EXPECT_FALSE(check_superblock(page, kOurs).is_ok()) << at;
  }
  EXPECT_EQ(check_superblock(PoolPage(), kOurs).code(), StatusCode::kInvalid);
}

TEST(PoolFormat, AnotherNodeTierSizeOrVersionIsIncompatible) {
  const auto refused = [](const PoolIdentity& other) {
    return check_superblock(make_superblock(other), kOurs);
  };
  PoolIdentity other = kOurs;
  other.node.low += 1;
  EXPECT_EQ(refused(other).code(), StatusCode::kIncompatible);
  EXPECT_EQ(refused(other).message(), "belongs to another node");
  other = kOurs;
  other.tier = 1;
  EXPECT_EQ(refused(other).message(), "is tier 1 and not tier 2");
  other = kOurs;
  other.bucket_count = 5;
  EXPECT_EQ(refused(other).message(), "has 5 buckets and not 4");
  PoolPage later = make_superblock(kOurs);
  later.bytes[offsetof(PoolSuperblock, version)] = std::byte{2};
  EXPECT_EQ(check_superblock(later, kOurs).code(), StatusCode::kIncompatible)
      << "its sum may be elsewhere";
}

class PoolFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = FileTier::create("/var/tmp", kOurs);
    ASSERT_TRUE(created.is_ok()) << created.status().message();
    tier_ = std::move(*created);
  }
  Status checked(const PoolIdentity& expected = kOurs) const { return tier_.check(expected); }

  FileTier tier_;
};

TEST_F(PoolFile, IsKnownAgain) { EXPECT_TRUE(checked().is_ok()) << checked().message(); }

TEST_F(PoolFile, OfAnotherNodeOrSizeIsRefused) {
  PoolIdentity other = kOurs;
  other.node.high = 1;
  EXPECT_EQ(checked(other).code(), StatusCode::kIncompatible);
  EXPECT_EQ(checked(other).message(), "belongs to another node");
  other = kOurs;
  other.bucket_count = 8;
  EXPECT_EQ(checked(other).code(), StatusCode::kIncompatible);
}

TEST_F(PoolFile, ThatIsCutOffOrDamagedIsRefused) {
  ASSERT_EQ(::ftruncate(tier_.fd(), static_cast<off_t>(kOurs.file_bytes() - 1)), 0);
  EXPECT_EQ(checked().message(), "is cut off");
  PoolPage page = make_superblock(kOurs);
  page.bytes[40] ^= std::byte{1};
  ASSERT_EQ(::pwrite(tier_.fd(), page.bytes.data(), kPageBytes, 0),
            static_cast<ssize_t>(kPageBytes));
  EXPECT_EQ(checked().message(), "is damaged: its sum is wrong");
  ASSERT_EQ(::ftruncate(tier_.fd(), 100), 0);
  EXPECT_EQ(checked().code(), StatusCode::kInvalid);
  ASSERT_EQ(::ftruncate(tier_.fd(), 0), 0);
  EXPECT_EQ(checked().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace cairn
