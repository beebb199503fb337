// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_names.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <memory>

namespace cairn::node {
namespace {

constexpr std::uint64_t kExt4 = 0xef53;
constexpr std::uint64_t kNfs = 0x6969;

// A kernel in which a descriptor is the place of a mount in `mounts`.
struct Machine {
  struct Mount {
    std::uint64_t id;
    StoreFacts facts;
  };
  std::map<int, Mount> mounts;
  std::string mountinfo;
  std::int64_t now_ns = 1;
  bool has_unique_ids = true;
  int error = 0;

  void mount(int fd, std::uint64_t id, StoreId store, std::uint64_t type, std::uint64_t fsid) {
    StoreFacts facts;
    facts.id = store;
    facts.type = type;
    facts.fsid = fsid;
    mounts[fd] = {id, facts};
  }
};

class StoreNamesTest : public ::testing::Test {
 protected:
  StoreNames::Kernel kernel() {
    return {[this](int fd) { return machine_.has_unique_ids ? machine_.mounts.at(fd).id : 0; },
            [this](int fd, StoreFacts* facts) {
              *facts = machine_.mounts.at(fd).facts;
              return machine_.error;
            },
            [this] { return machine_.mountinfo; }, [this] { return machine_.now_ns; }};
  }

  static constexpr StoreId kFirst{0x2d};
  static constexpr StoreId kSecond{0x2e};
  Machine machine_;
  StoreNames names_{kernel()};
};

TEST_F(StoreNamesTest, AskTheKernelOncePerMount) {
  machine_.mount(3, 100, kFirst, kExt4, 77);
  machine_.mount(4, 101, kFirst, kExt4, 77);
  const StoreName name = names_.name_of(kFirst, 3);
  EXPECT_NE(name, StoreName::kUnknown);
  EXPECT_EQ(names_.name_of(kFirst, 3), name);
  EXPECT_EQ(names_.looks(), 1u);
  EXPECT_EQ(names_.name_of(kFirst, 4), name) << "a bind mount of it";
  EXPECT_EQ(names_.name_of(kFirst, 3), name);
  EXPECT_EQ(names_.name_of(kFirst, 4), name);
  EXPECT_EQ(names_.looks(), 2u);
}

TEST_F(StoreNamesTest, SeeThatANumberHasBecomeAnotherFileSystems) {
  machine_.mount(3, 100, kFirst, kExt4, 77);
  const StoreName before = names_.name_of(kFirst, 3);
  machine_.mount(3, 101, kFirst, kExt4, 78);
  const StoreName after = names_.name_of(kFirst, 3);
  EXPECT_NE(after, before);
  EXPECT_NE(after, StoreName::kUnknown);
  machine_.mount(3, 102, kFirst, kExt4, 77);
  EXPECT_EQ(names_.name_of(kFirst, 3), before);
}

TEST_F(StoreNamesTest, LookAgainAfterASecondWhereMountsHaveNoNumbersOfTheirOwn) {
  machine_.has_unique_ids = false;
  machine_.mount(3, 0, kFirst, kExt4, 77);
  const StoreName before = names_.name_of(kFirst, 3);
  machine_.mount(3, 0, kFirst, kExt4, 78);
  EXPECT_EQ(names_.name_of(kFirst, 3), before);
  machine_.now_ns += 1'000'000'000;
  EXPECT_NE(names_.name_of(kFirst, 3), before);
}

TEST_F(StoreNamesTest, GiveACopyOfAMountedFileSystemNone) {
  machine_.mount(3, 100, kFirst, kExt4, 77);
  machine_.mount(4, 101, kSecond, kExt4, 77);
  machine_.mountinfo = "36 1 0:45 / /a rw - ext4 /dev/a rw\n37 1 0:46 / /b rw - ext4 /dev/b rw\n";
  const StoreName name = names_.name_of(kFirst, 3);
  EXPECT_EQ(names_.name_of(kSecond, 4), StoreName::kUnknown);
  EXPECT_EQ(names_.name_of(kFirst, 3), name);
}

TEST_F(StoreNamesTest, FollowAFileSystemThatIsMountedAgainUnderAnotherNumber) {
  machine_.mount(3, 100, kFirst, kExt4, 77);
  machine_.mount(4, 101, kSecond, kExt4, 77);
  machine_.mountinfo = "37 1 0:46 / /b rw - ext4 /dev/b rw\n";
  const StoreName name = names_.name_of(kFirst, 3);
  EXPECT_EQ(names_.name_of(kSecond, 4), name);
}

TEST_F(StoreNamesTest, GiveTheMountsOfOneServersFileSystemOneName) {
  machine_.mount(3, 100, kFirst, kNfs, 0);
  machine_.mount(4, 101, kSecond, kNfs, 0);
  machine_.mountinfo =
      "36 1 0:45 / /a rw - nfs4 host:/export rw,soft\n"
      "37 1 0:46 /sub /b rw - nfs4 host:/export/sub rw,hard,nosharecache\n";
  const StoreName name = names_.name_of(kFirst, 3);
  EXPECT_NE(name, StoreName::kUnknown);
  EXPECT_EQ(names_.name_of(kSecond, 4), name);
}

TEST_F(StoreNamesTest, GiveNoneWhereTheKernelDoesNotTell) {
  machine_.mount(3, 100, kFirst, kExt4, 77);
  machine_.error = -EACCES;
  EXPECT_EQ(names_.name_of(kFirst, 3), StoreName::kUnknown);
}

TEST(MountSources, AreOfTheLineWithTheNumberIfAllSuchLinesAgree) {
  const std::string text =
      "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "36 21 0:45 / /scratch rw shared:2 master:3 - fuse.mfs mfs#host:9421 rw\n"
      "37 21 0:46 / /a rw - nfs host:/a rw\n"
      "38 21 0:46 / /b rw - nfs host:/b rw\n"
      "39 21 0:47 /deep/er /c rw - nfs host:/c/deep/er rw\n"
      "40 21 0:47 / /d rw - nfs host:/c rw\n"
      "broken\n";
  EXPECT_EQ(mount_source_of(text, StoreId{makedev(8, 1)}), (MountSource{"ext4", "/dev/sda1"}));
  EXPECT_EQ(mount_source_of(text, StoreId{makedev(0, 45)}),
            (MountSource{"fuse.mfs", "mfs#host:9421"}));
  EXPECT_EQ(mount_source_of(text, StoreId{makedev(0, 46)}), MountSource());
  EXPECT_EQ(mount_source_of(text, StoreId{makedev(0, 47)}), (MountSource{"nfs", "host:/c"}));
  EXPECT_EQ(mount_source_of(text, StoreId{makedev(0, 48)}), MountSource());
  EXPECT_TRUE(is_mounted(text, StoreId{makedev(0, 45)}));
  EXPECT_FALSE(is_mounted(text, StoreId{makedev(0, 48)}));
}

}  // namespace
}  // namespace cairn::node
