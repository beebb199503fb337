// SPDX-License-Identifier: Apache-2.0
// What a file is called, on this node and elsewhere: over two mounts, over one that is mounted
// twice, and over one that has another's number.
#include "memory/backing/store_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "memory/backing/posix_backing.h"

namespace cairn {
namespace {

constexpr std::uint64_t kExt4 = 0xef53;
constexpr std::uint64_t kXfs = 0x58465342;
constexpr std::uint64_t kNfs = 0x6969;
constexpr std::uint64_t kFuse = 0x65735546;
constexpr std::uint64_t kOverlay = 0x794c7630;
constexpr std::uint64_t kTmpfs = 0x01021994;

StoreFacts facts(std::uint64_t device, std::uint64_t type, std::uint64_t fsid) {
  StoreFacts facts;
  facts.id = StoreId{device};
  facts.type = type;
  facts.fsid = fsid;
  return facts;
}

StoreName name(const StoreFacts& facts) { return name_of(facts, "", ""); }

TEST(StoreNames, AreTheFileSystemsAndNotTheDevicesNumber) {
  const StoreName named = name(facts(0x801, kExt4, 77));
  EXPECT_NE(named, StoreName::kUnknown);
  EXPECT_EQ(name(facts(0x802, kExt4, 77)), named) << "after a reboot it has another number";
  EXPECT_NE(name(facts(0x801, kExt4, 78)), named);
  EXPECT_NE(name(facts(0x801, kXfs, 77)), named);
}

TEST(StoreNames, ComeFromTheUuidWhereTheFsidIsTheNumberAgain) {
  StoreFacts xfs = facts(0x702, kXfs, 0x702);
  EXPECT_EQ(name(xfs), StoreName::kUnknown);
  xfs.uuid_bytes = 16;
  xfs.uuid[0] = 1;
  const StoreName named = name(xfs);
  EXPECT_NE(named, StoreName::kUnknown);
  xfs.id = StoreId{0x703};
  xfs.fsid = 0x703;
  EXPECT_EQ(name(xfs), named);
  xfs.uuid[15] = 1;
  EXPECT_NE(name(xfs), named);
}

TEST(StoreNames, ComeFromTheMountTableForANetworkFileSystemThatKeepsItsInodeNumbers) {
  const StoreFacts nfs = facts(0x2d, kNfs, 0);
  EXPECT_TRUE(is_named_by_source(nfs));
  EXPECT_EQ(name(nfs), StoreName::kUnknown);
  const StoreName named = name_of(nfs, "nfs4", "server:/export");
  EXPECT_NE(named, StoreName::kUnknown);
  EXPECT_EQ(name_of(nfs, "nfs", "server:/export"), named);
  EXPECT_NE(name_of(nfs, "nfs4", "server:/other"), named);
  const StoreFacts fuse = facts(0x2e, kFuse, 0);
  EXPECT_NE(name_of(fuse, "fuse.mfs", "mfs#master:9421"), StoreName::kUnknown);
  EXPECT_EQ(name_of(fuse, "fuse.sshfs", "host:/home"), StoreName::kUnknown)
      << "each mount numbers its files anew";
}

TEST(StoreNames, OfAnOverlayAreNone) {
  EXPECT_EQ(name(facts(0x2f, kOverlay, 77)), StoreName::kUnknown)
      << "it shows the fsid of the file system below, and so does every other overlay on that";
}

TEST(StoreNames, OfATmpfsAreNone) {
  StoreFacts tmpfs = facts(0x30, kTmpfs, 77);
  tmpfs.uuid_bytes = 16;
  EXPECT_EQ(name(tmpfs), StoreName::kUnknown) << "the next mount of it has another fsid";
  tmpfs.fsid = 0;
  EXPECT_EQ(name_of(tmpfs, "tmpfs", "none"), StoreName::kUnknown);
  EXPECT_FALSE(is_named_by_source(tmpfs));
}

// A directory with two tmpfs in it, in a mount namespace of this child process alone.
class Mounts {
 public:
  Mounts() {
    is_there_ = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    is_there_ = is_there_ && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("all", "/tmp", "tmpfs", 0, "size=1m") == 0;
    for (const char* place : {"/tmp/one", "/tmp/two", "/tmp/bound"}) {
      is_there_ = is_there_ && ::mkdir(place, 0700) == 0;
    }
  }
  bool are_there() const { return is_there_; }
  static bool mount(const char* place) {
    return ::mount("none", place, "tmpfs", 0, "size=1m") == 0;
  }

 private:
  bool is_there_ = false;
};

struct Seen {
  ObjectKey key;
  StoreName name = StoreName::kUnknown;
};

Seen see(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  StoreStatus status;
  StoreFacts facts;
  EXPECT_EQ(store_status(fd, &status), 0);
  EXPECT_EQ(read_store_facts(fd, &facts), 0);
  EXPECT_EQ(facts.id, status.key.store);
  ::close(fd);
  return {status.key, name(facts)};
}

// Runs what needs mounts of its own in a child. `scene` reports by EXPECT.
void with_mounts(void (*scene)()) {
  constexpr int kNoMounts = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!Mounts().are_there()) ::_exit(kNoMounts);
    scene();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMounts) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StoreNamesOfMounts, TwoFileSystemsAreTwoStoresAndOneMountedTwiceIsOne) {
  with_mounts([] {
    ASSERT_TRUE(Mounts::mount("/tmp/one"));
    ASSERT_TRUE(Mounts::mount("/tmp/two"));
    ASSERT_EQ(::mount("/tmp/one", "/tmp/bound", nullptr, MS_BIND, nullptr), 0);
    const Seen one = see("/tmp/one/file");
    const Seen two = see("/tmp/two/file");
    const Seen bound = see("/tmp/bound/file");
    EXPECT_NE(one.key.store, two.key.store);
    EXPECT_NE(one.key, two.key);
    EXPECT_EQ(bound.key, one.key) << "two names of one file";
    EXPECT_EQ(bound.name, one.name);
  });
}

TEST(StoreNamesOfMounts, AContainerSeesTheSameKey) {
  with_mounts([] {
    ASSERT_TRUE(Mounts::mount("/tmp/one"));
    const Seen outside = see("/tmp/one/file");
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount("/tmp/one", "/tmp/two", nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::umount("/tmp/one"), 0);
    const Seen inside = see("/tmp/two/file");
    EXPECT_EQ(inside.key, outside.key);
    EXPECT_EQ(inside.name, outside.name);
  });
}

// The kernel gives the number of a file system that has gone to the next one, at once.
TEST(StoreNamesOfMounts, TheNextFileSystemOfANumberHasOtherFiles) {
  with_mounts([] {
    ASSERT_TRUE(Mounts::mount("/tmp/one"));
    const Seen before = see("/tmp/one/file");
    ASSERT_EQ(::umount("/tmp/one"), 0);
    ASSERT_TRUE(Mounts::mount("/tmp/one"));
    const Seen after = see("/tmp/one/file");
    EXPECT_NE(after.key, before.key) << "by its birth, if not by its number";
  });
}

// What an ObjectKey rests on: an open file keeps the number, whatever becomes of the mount.
TEST(StoreNamesOfMounts, AnOpenFileKeepsTheNumberOfItsFileSystem) {
  with_mounts([] {
    ASSERT_TRUE(Mounts::mount("/tmp/one"));
    const int open = ::open("/tmp/one/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(open, 0);
    StoreStatus status;
    ASSERT_EQ(store_status(open, &status), 0);
    ASSERT_EQ(::umount2("/tmp/one", MNT_DETACH), 0);
    for (const char* place : {"/tmp/one", "/tmp/two", "/tmp/bound"}) {
      ASSERT_TRUE(Mounts::mount(place));
      EXPECT_NE(see(std::string(place) + "/file").key.store, status.key.store);
    }
    StoreStatus still;
    ASSERT_EQ(store_status(open, &still), 0);
    EXPECT_EQ(still.key, status.key);
    ::close(open);
  });
}

}  // namespace
}  // namespace cairn
