// SPDX-License-Identifier: Apache-2.0
// Pool files that a node has kept: the right one is opened again, every other one is refused.
#include "memory/tiers/pool_format.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

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

class KeptPool : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/cairn-kept-pool-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/pool";
    auto created = FileTier::create(directory_, kOurs);
    ASSERT_TRUE(created.is_ok()) << created.status().message();
    tier_ = std::move(*created);
    std::memset(page_.bytes.data(), 'x', kPageBytes);
    ASSERT_EQ(tier_.write_pages(kLastPage, page_.bytes.data()), 0);
    // A pool has no name; one that a node keeps would have been made with one.
    std::ofstream kept(path_, std::ios::binary);
    PoolPage page;
    for (std::uint64_t at = 0; at < kOurs.file_bytes(); at += kPageBytes) {
      ASSERT_EQ(::pread(tier_.fd(), page.bytes.data(), kPageBytes, static_cast<off_t>(at)),
                static_cast<ssize_t>(kPageBytes));
      kept.write(reinterpret_cast<const char*>(page.bytes.data()), kPageBytes);
    }
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Status opened(const PoolIdentity& expected = kOurs) const {
    return FileTier::open_existing(path_, expected).status();
  }

  static constexpr TierExtent kLastPage{4 * kBlockBytes - kPageBytes, kPageBytes};
  std::string directory_;
  std::string path_;
  FileTier tier_;
  PoolPage page_;
};

TEST_F(KeptPool, IsOpenedAgainWithItsBytes) {
  auto again = FileTier::open_existing(path_, kOurs);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->capacity_bytes(), 4 * kBlockBytes);
  PoolPage read;
  ASSERT_EQ(again->read_pages(kLastPage, read.bytes.data()), 0);
  EXPECT_EQ(read.bytes, page_.bytes);
}

TEST_F(KeptPool, OfAnotherNodeOrSizeIsRefusedByName) {
  PoolIdentity other = kOurs;
  other.node.high = 1;
  EXPECT_EQ(opened(other).code(), StatusCode::kIncompatible);
  EXPECT_EQ(opened(other).message(), path_ + " belongs to another node");
  other = kOurs;
  other.bucket_count = 8;
  EXPECT_EQ(opened(other).code(), StatusCode::kIncompatible);
}

TEST_F(KeptPool, ThatIsCutOffOrDamagedIsRefused) {
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(kOurs.file_bytes() - 1)), 0);
  EXPECT_EQ(opened().message(), path_ + " is cut off");
  const int file = ::open(path_.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(file, "?", 1, 40), 1);
  ::close(file);
  EXPECT_EQ(opened().message(), path_ + " is damaged: its sum is wrong");
  ASSERT_EQ(::truncate(path_.c_str(), 100), 0);
  EXPECT_EQ(opened().code(), StatusCode::kInvalid);
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  EXPECT_EQ(opened().code(), StatusCode::kInvalid);
}

TEST_F(KeptPool, ThatAStrangerCouldHavePutThereIsRefused) {
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_EQ(opened().code(), StatusCode::kDenied);
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(opened().is_ok());
  std::filesystem::rename(path_, directory_ + "/elsewhere");
  std::filesystem::create_symlink("elsewhere", path_);
  EXPECT_EQ(opened().code(), StatusCode::kDenied);
  std::filesystem::remove(path_);
  EXPECT_EQ(opened().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace cairn
