// SPDX-License-Identifier: Apache-2.0
// What every backing keeps to, run against each of them; then what is one's own.
#include "memory/backing/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "memory/backing/no_backing.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/region_backing.h"
#include "memory/backing/testing/faulty_backing.h"

namespace cairn {
namespace {

using testing::BackingCall;
using testing::FaultyBacking;

int make_unnamed_file() {
  char path[] = "/var/tmp/cairn-backing-XXXXXX";
  const int fd = ::mkstemp(path);
  EXPECT_GE(fd, 0);
  ::unlink(path);
  return fd;
}

class OfAFile {
 public:
  static constexpr bool kKeepsBytes = true;
  ~OfAFile() {
    file_.close_extra();
    ::close(fd_);
  }
  Backing& backing() { return file_; }

 private:
  int fd_ = make_unnamed_file();
  PosixBacking file_{fd_, O_RDWR};
};

class OfNothing {
 public:
  static constexpr bool kKeepsBytes = false;
  Backing& backing() { return nothing_; }

 private:
  NoBacking nothing_{ObjectKey{ObjectKind::kScratch, StoreId{}, FileId{1, 2}}};
};

class OfAFileWithoutFaults {
 public:
  static constexpr bool kKeepsBytes = true;
  Backing& backing() { return faulty_; }

 private:
  OfAFile file_;
  FaultyBacking faulty_{file_.backing()};
};

template <typename Kind>
class Backings : public ::testing::Test {
 protected:
  Backing& backing() { return kind_.backing(); }
  std::uint64_t size() {
    StoreStatus status;
    EXPECT_EQ(backing().status(&status), 0);
    return status.stamp.size;
  }
  std::string read(std::uint64_t offset, std::size_t length) {
    std::string bytes(length, 'x');
    const ssize_t got = backing().read(offset, bytes.data(), length);
    EXPECT_GE(got, 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  // What a read must give of bytes that were written, if the write was taken.
  static std::string kept(const std::string& bytes) {
    return Kind::kKeepsBytes ? bytes : std::string(bytes.size(), '\0');
  }

  Kind kind_;
};

using Kinds = ::testing::Types<OfAFile, OfNothing, OfAFileWithoutFaults>;
TYPED_TEST_SUITE(Backings, Kinds);

TYPED_TEST(Backings, BeginEmptyAndReadShortAtTheEndOnly) {
  EXPECT_EQ(this->size(), 0u);
  EXPECT_EQ(this->read(0, 10), "");
  ASSERT_EQ(this->backing().truncate(100), 0);
  EXPECT_EQ(this->read(0, 10), std::string(10, '\0'));
  EXPECT_EQ(this->read(95, 10), std::string(5, '\0'));
  EXPECT_EQ(this->read(100, 10), "");
  EXPECT_EQ(this->read(UINT32_MAX, 10), "");
}

TYPED_TEST(Backings, TakeAWriteAndGiveItBackOrRefuseIt) {
  const std::string bytes = "bytes of a block";
  const ssize_t put = this->backing().write(5, bytes.data(), bytes.size());
  if (TypeParam::kKeepsBytes) {
    ASSERT_EQ(put, static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(this->size(), 5 + bytes.size());
    EXPECT_EQ(this->read(0, 100), std::string(5, '\0') + bytes);
  } else {
    EXPECT_EQ(put, -ENOSPC) << "a taken write would turn blocks clean";
    EXPECT_EQ(this->size(), 0u);
  }
}

TYPED_TEST(Backings, TakeAtLeastAByteOfManyPartsOrSayWhyNot) {
  std::string first = "first";
  std::string second = "second";
  const std::array<iovec, 2> parts = {iovec{first.data(), first.size()},
                                      iovec{second.data(), second.size()}};
  const ssize_t put = this->backing().write_once(0, parts);
  EXPECT_NE(put, 0);
  if (TypeParam::kKeepsBytes) {
    ASSERT_GT(put, 0);
    EXPECT_EQ(this->read(0, 100), (first + second).substr(0, static_cast<std::size_t>(put)));
  } else {
    EXPECT_LT(put, 0);
  }
  EXPECT_EQ(parts[0].iov_len, first.size());
}

TYPED_TEST(Backings, ReadIntoPartsAsIntoOneBuffer) {
  ASSERT_EQ(this->backing().truncate(8), 0);
  (void)this->backing().write(0, "abcdefgh", 8);
  std::string first(3, 'x');
  std::string second(10, 'x');
  std::array<iovec, 2> parts = {iovec{first.data(), first.size()},
                                iovec{second.data(), second.size()}};
  EXPECT_EQ(this->backing().read_parts(0, parts), 8);
  EXPECT_EQ(first + second.substr(0, 5), this->kept("abcdefgh"));
  EXPECT_EQ(second.substr(5), "xxxxx") << "behind the end nothing is touched";
}

TYPED_TEST(Backings, ReadOnceAtLeastAByteOfWhatIsThere) {
  ASSERT_EQ(this->backing().truncate(8), 0);
  std::string bytes(20, 'x');
  const ssize_t got = this->backing().read_once(0, bytes.data(), bytes.size());
  ASSERT_GT(got, 0);
  ASSERT_LE(got, 8);
  EXPECT_EQ(bytes.substr(0, static_cast<std::size_t>(got)),
            std::string(static_cast<std::size_t>(got), '\0'));
}

TYPED_TEST(Backings, AppendBehindTheLastByte) {
  ASSERT_EQ(this->backing().truncate(10), 0);
  std::uint64_t offset = 0;
  const ssize_t put = this->backing().append("end", 3, &offset);
  if (TypeParam::kKeepsBytes) {
    ASSERT_EQ(put, 3);
    EXPECT_EQ(offset, 10u);
    EXPECT_EQ(this->read(9, 10), std::string(1, '\0') + "end");
  } else {
    EXPECT_EQ(put, -ENOSPC);
    EXPECT_EQ(this->size(), 10u);
  }
}

TYPED_TEST(Backings, ForgetWhatIsCutAndGrowByZeros) {
  (void)this->backing().write(0, "abcdefgh", 8);
  ASSERT_EQ(this->backing().truncate(4), 0);
  ASSERT_EQ(this->backing().truncate(8), 0);
  EXPECT_EQ(this->size(), 8u);
  EXPECT_EQ(this->read(0, 8), this->kept("abcd") + std::string(4, '\0'));
  ASSERT_EQ(this->backing().truncate_as_called(8), 0);
  EXPECT_EQ(this->size(), 8u);
}

TYPED_TEST(Backings, GiveRoomOrRefuseIt) {
  const int error = this->backing().allocate(0, 0, 4096);
  if (error == 0) {
    EXPECT_EQ(this->size(), 4096u);
  } else {
    EXPECT_EQ(error, -EOPNOTSUPP);
    EXPECT_EQ(this->size(), 0u);
  }
}

TYPED_TEST(Backings, TellTheTimeThatTheyWereGiven) {
  constexpr std::int64_t kMtime = 1'300'000'000'123'456'789;
  ASSERT_EQ(this->backing().set_mtime(kMtime), 0);
  StoreStatus status;
  ASSERT_EQ(this->backing().status(&status), 0);
  EXPECT_EQ(status.stamp.mtime_ns, kMtime);
}

TYPED_TEST(Backings, AreOneObjectAllTheTime) {
  StoreStatus before;
  ASSERT_EQ(this->backing().status(&before), 0);
  ASSERT_EQ(this->backing().truncate(1 << 20), 0);
  ASSERT_EQ(this->backing().set_mtime(1), 0);
  StoreStatus after;
  ASSERT_EQ(this->backing().status(&after), 0);
  EXPECT_EQ(after.key, before.key);
  EXPECT_TRUE(S_ISREG(after.mode));
}

TYPED_TEST(Backings, HaveNothingMoreToWaitForAfterASync) {
  (void)this->backing().write(0, "abc", 3);
  EXPECT_EQ(this->backing().sync(SyncDepth::kData), 0);
  EXPECT_EQ(this->backing().sync(SyncDepth::kAll), 0);
  EXPECT_TRUE(this->backing().is_writable());
}

class PosixBackings : public ::testing::Test {
 protected:
  void TearDown() override { ::close(fd_); }
  int fd_ = make_unnamed_file();
};

TEST_F(PosixBackings, ReadAFileThatWasOpenedForWritingThroughADescriptorOfTheirOwn) {
  ASSERT_EQ(::pwrite(fd_, "abc", 3, 0), 3);
  const std::string link = "/proc/self/fd/" + std::to_string(fd_);
  const int write_only = ::open(link.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(write_only, 0);
  PosixBacking file(write_only, O_WRONLY);
  char bytes[3];
  EXPECT_EQ(file.read(0, bytes, 3), 3);
  EXPECT_EQ(file.read_once(0, bytes, 3), -EBADF) << "not through the one that the file has";
  file.close_extra();
  ::close(write_only);
}

TEST_F(PosixBackings, DoNotPutBytesAnywhereWhereTheKernelAppends) {
  EXPECT_FALSE(PosixBacking(fd_, O_WRONLY | O_APPEND).is_writable());
  EXPECT_FALSE(PosixBacking(fd_, O_RDONLY).is_writable());
  EXPECT_TRUE(PosixBacking(fd_, O_WRONLY).is_writable());
}

TEST_F(PosixBackings, WithoutAFileFailAtEveryCall) {
  PosixBacking none;
  char byte = 0;
  std::uint64_t offset = 0;
  StoreStatus status;
  EXPECT_EQ(none.descriptor(), -1);
  EXPECT_EQ(none.read(0, &byte, 1), -EBADF);
  EXPECT_EQ(none.write(0, &byte, 1), -EBADF);
  EXPECT_EQ(none.append(&byte, 1, &offset), -EBADF);
  EXPECT_EQ(none.status(&status), -EBADF);
  EXPECT_EQ(none.truncate(0), -EBADF);
  EXPECT_EQ(none.set_mtime(0), -EBADF);
  EXPECT_EQ(none.sync(SyncDepth::kAll), -EBADF);
}

TEST_F(PosixBackings, FaultsComeAtTheCallsThatWereNamed) {
  PosixBacking file(fd_, O_RDWR);
  FaultyBacking faulty(file);
  faulty.fail(BackingCall::kWrite, EIO, 2, 1);
  faulty.shorten(BackingCall::kWrite, 2, 3);
  EXPECT_EQ(faulty.write(0, "abc", 3), 3);
  EXPECT_EQ(faulty.write(0, "xyz", 3), -EIO);
  std::string bytes = "xyz";
  const std::array<iovec, 1> parts = {iovec{bytes.data(), bytes.size()}};
  EXPECT_EQ(faulty.write_once(0, parts), 2);
  EXPECT_EQ(faulty.count(BackingCall::kWrite), 3u);
  char stored[4] = {};
  EXPECT_EQ(faulty.read(0, stored, 3), 3);
  EXPECT_STREQ(stored, "xyc");
  faulty.heal();
  EXPECT_EQ(faulty.write(0, "xyz", 3), 3);
}

TEST_F(PosixBackings, AFaultMayTearAWrite) {
  PosixBacking file(fd_, O_RDWR);
  FaultyBacking faulty(file);
  ASSERT_EQ(faulty.write(0, "aaaa", 4), 4);
  faulty.tear(BackingCall::kWrite, 2, EIO, 2, 1);
  EXPECT_EQ(faulty.write(0, "bbbb", 4), -EIO);
  char stored[5] = {};
  EXPECT_EQ(faulty.read(0, stored, 4), 4);
  EXPECT_STREQ(stored, "bbaa");
}

TEST_F(PosixBackings, AFaultMayTakeItsTime) {
  PosixBacking file(fd_, O_RDWR);
  FaultyBacking faulty(file);
  faulty.delay(BackingCall::kSync, 20);
  const std::int64_t before = monotonic_ns();
  EXPECT_EQ(faulty.sync(SyncDepth::kAll), 0);
  EXPECT_GE(monotonic_ns() - before, 20'000'000);
  faulty.hang(BackingCall::kWrite);
  std::thread writer([&] { EXPECT_EQ(faulty.write(0, "abc", 3), 3); });
  faulty.await_hanging(1);
  char byte = 0;
  EXPECT_EQ(faulty.read(0, &byte, 1), 0) << "nothing is written yet";
  faulty.heal();
  writer.join();
  EXPECT_EQ(faulty.read(0, &byte, 1), 1);
}

TEST_F(PosixBackings, APowerCutLosesWhatNoSyncHasCovered) {
  PosixBacking file(fd_, O_RDWR);
  std::array<bool, 3> seen{};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomSource random(seed);
    FaultyBacking faulty(file);
    const std::string old(12'000, 'a');
    const std::string fresh(4000, 'b');
    ASSERT_EQ(faulty.write(0, old.data(), old.size()), 12'000);
    faulty.begin_forgetting();
    ASSERT_EQ(faulty.write(0, fresh.data(), 4000), 4000);
    faulty.fail(BackingCall::kSync, EIO, 2, 1);
    ASSERT_EQ(faulty.sync(SyncDepth::kData), 0);
    ASSERT_EQ(faulty.write(4000, fresh.data(), 4000), 4000);
    ASSERT_EQ(faulty.sync(SyncDepth::kData), -EIO) << "a sync that fails promises nothing";
    faulty.cut_power(random);
    std::string left(12'000, 'x');
    ASSERT_EQ(file.read(0, left.data(), left.size()), 12'000);
    EXPECT_TRUE(left.substr(0, 4000) == fresh);
    EXPECT_TRUE(left.substr(8000) == old.substr(8000));
    const std::string middle = left.substr(4000, 4000);
    seen[middle == fresh ? 0 : middle == old.substr(0, 4000) ? 1 : 2] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]) << "survived, vanished and torn";
}

// The other backings take bytes; this one has them from its reader.
TEST(RegionBackings, GiveTheirBytesAndTakeNone) {
  StoreStatus status;
  status.key.kind = ObjectKind::kRegion;
  status.stamp.size = 5;
  const std::string cells = "cells";
  RegionBacking made(status, reinterpret_cast<const std::byte*>(cells.data()));
  std::array<char, 4> first{};
  std::array<char, 4> second{};
  std::array<iovec, 2> parts{iovec{first.data(), 2}, iovec{second.data(), second.size()}};
  EXPECT_EQ(made.read_parts(1, parts), 4);
  EXPECT_EQ(std::string(first.data(), 2) + std::string(second.data(), 2), "ells");
  EXPECT_EQ(made.read(5, first.data(), 1), 0);
  StoreStatus same;
  EXPECT_EQ(made.status(&same), 0);
  EXPECT_EQ(same.key, status.key);
  std::uint64_t where = 0;
  EXPECT_EQ(made.write(0, "x", 1), -EBADF);
  EXPECT_EQ(made.append("x", 1, &where), -EBADF);
  EXPECT_EQ(made.truncate(0), -EBADF);
  EXPECT_FALSE(made.is_writable());
  RegionBacking nothing(status, nullptr);
  EXPECT_EQ(nothing.read(0, first.data(), 1), -ENODATA);
  EXPECT_EQ(nothing.read_parts(0, parts), -ENODATA);
}

}  // namespace
}  // namespace cairn
