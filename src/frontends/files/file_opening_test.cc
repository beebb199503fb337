// SPDX-License-Identifier: Apache-2.0
// Open files over memory of the test's own, without a service and without hooks.
#include "frontends/files/file_opening.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_duplicates.h"
#include "frontends/files/file_inheritance.h"
#include "frontends/files/file_shape.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_io.h"
#include "frontends/paths/path_filter.h"
#include "frontends/paths/visible_status.h"

namespace cairn {
namespace {

class FileOpening : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    MemoryShape shape;
    shape.tier_bytes[0] = 32 << 20;
    shape.clients_max = 16;
    auto memory = NodeMemory::create(shape, {});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    const Owner self = memory->owners().current(1);
    Session::instance().install_for_test(std::move(*memory), self, true);
  }
  void SetUp() override {
    char pattern[] = "/var/tmp/cairn-open-XXXXXX";
    root_ = std::filesystem::canonical(mkdtemp(pattern)).string();
    PathFilter::configure(root_.c_str(), "*.skip");
    PathFilter::resolve();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  int open(const char* name, int flags) {
    return open_managed(AT_FDCWD, (root_ + "/" + name).c_str(), flags, 0644);
  }
  std::string root_;
};

TEST_F(FileOpening, BuffersAManagedFileBehindAPlaceholder) {
  const int fd = open("a", O_RDWR | O_CREAT);
  ASSERT_GE(fd, 0);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  char byte = 0;
  EXPECT_EQ(::pread(fd, &byte, 1, 0), -1) << "a call that was missed must fail loudly";
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(PrivateDescriptors::is_private(file->private_fd()));
  EXPECT_EQ(file_write(*file, "hello", 5), 5);
  char text[8] = {};
  EXPECT_EQ(file_pread(*file, text, sizeof text, 1), 4);
  EXPECT_STREQ(text, "ello");
  EXPECT_EQ(close_tracked(fd), 0);
  EXPECT_EQ(DescriptorTable::find(fd), nullptr);
}

TEST_F(FileOpening, KnowsTheFlagsThatTheKernelKeeps) {
  for (const int more : {0, O_APPEND, O_NONBLOCK, O_NOCTTY, O_CLOEXEC, O_SYNC,
                         O_NOFOLLOW | O_APPEND, O_EXCL | O_CREAT}) {
    for (const int access : {O_RDONLY, O_WRONLY, O_RDWR}) {
      const int flags = access | more | ((more & O_EXCL) != 0 ? 0 : O_CREAT);
      const std::string plain = root_ + "/flags.skip";
      const int native = ::open(plain.c_str(), flags, 0644);
      const int fd = open("flags", flags);
      ASSERT_GE(native, 0);
      ASSERT_GE(fd, 0);
      const OpenFile* file = DescriptorTable::find(fd);
      ASSERT_NE(file, nullptr);
      EXPECT_EQ(file->flags(), static_cast<unsigned>(::fcntl(native, F_GETFL)))
          << std::hex << flags;
      EXPECT_EQ(::fcntl(fd, F_GETFD), ::fcntl(native, F_GETFD)) << std::hex << flags;
      ::close(native);
      EXPECT_EQ(close_tracked(fd), 0);
      ::unlink(plain.c_str());
      ::unlink((root_ + "/flags").c_str());
    }
  }
}

TEST_F(FileOpening, TakesTheLowestFreeNumber) {
  const int expected = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(expected);
  const int fd = open("lowest", O_RDWR | O_CREAT);
  EXPECT_EQ(fd, expected);
  const int next = open("lowest", O_RDONLY);
  EXPECT_EQ(next, expected + 1);
  EXPECT_EQ(close_tracked(fd), 0);
  const int again = open("lowest", O_RDONLY);
  EXPECT_EQ(again, expected);
  EXPECT_EQ(close_tracked(again), 0);
  EXPECT_EQ(close_tracked(next), 0);
}

TEST_F(FileOpening, LeavesWhatIsNotManagedAlone) {
  const int excluded = open("b.skip", O_RDWR | O_CREAT);
  const int device = open_managed(AT_FDCWD, "/dev/null", O_RDWR, 0);
  const int directory = open_managed(AT_FDCWD, root_.c_str(), O_RDONLY, 0);
  for (const int fd : {excluded, device, directory}) {
    ASSERT_GE(fd, 0);
    EXPECT_EQ(DescriptorTable::find(fd), nullptr);
    ::close(fd);
  }
  EXPECT_EQ(open("missing", O_RDONLY), -ENOENT);
}

TEST_F(FileOpening, SharesTheOffsetBetweenDuplicatesOnly) {
  const int fd = open("c", O_RDWR | O_CREAT);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  const int second = ::fcntl(fd, F_DUPFD, 0);
  note_duplicate(*file, second, false);
  EXPECT_EQ(file_write(*DescriptorTable::find(second), "abc", 3), 3);
  EXPECT_EQ(file_seek(*file, 0, SEEK_CUR), 3);
  const int other = open("c", O_RDONLY);
  EXPECT_EQ(file_seek(*DescriptorTable::find(other), 0, SEEK_CUR), 0);
  EXPECT_EQ(close_tracked(fd), 0);
  EXPECT_EQ(file_write(*DescriptorTable::find(second), "d", 1), 1) << "a duplicate keeps it open";
  EXPECT_EQ(close_tracked(second), 0);
  EXPECT_EQ(close_tracked(other), 0);
}

TEST_F(FileOpening, AppendsWhereverTheOffsetIs) {
  const int fd = open("d", O_RDWR | O_CREAT | O_APPEND);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file_write(*file, "12", 2), 2);
  EXPECT_EQ(file_seek(*file, 0, SEEK_SET), 0);
  EXPECT_EQ(file_pwrite(*file, "34", 2, 0), 2);
  char text[8] = {};
  EXPECT_EQ(file_pread(*file, text, sizeof text, 0), 4);
  EXPECT_STREQ(text, "1234");
  close_tracked(fd);
}

TEST_F(FileOpening, ShowsSizeAndContentsThatTheStoreDoesNotHaveYet) {
  const int fd = open("e", O_WRONLY | O_CREAT);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  const std::string text(100000, 'x');
  EXPECT_EQ(file_write(*file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  struct ::stat status;
  ASSERT_EQ(visible_stat(AT_FDCWD, (root_ + "/e").c_str(), 0, &status), 0);
  EXPECT_EQ(status.st_size, 100000);
  const int reader = open("e", O_RDONLY);
  std::string got(text.size() + 1, '\0');
  EXPECT_EQ(file_read(*DescriptorTable::find(reader), got.data(), got.size()),
            static_cast<ssize_t>(text.size()));
  EXPECT_EQ(got.substr(0, text.size()), text);
  close_tracked(reader);
  close_tracked(fd);
  EXPECT_EQ(std::filesystem::file_size(root_ + "/e"), text.size()) << "at the latest at close";
}

TEST_F(FileOpening, TruncatesOnOpen) {
  const int first = open("f", O_WRONLY | O_CREAT);
  EXPECT_EQ(file_write(*DescriptorTable::find(first), "123", 3), 3);
  const int second = open("f", O_WRONLY | O_TRUNC);
  ASSERT_GE(second, 0);
  EXPECT_EQ(file_size(*DescriptorTable::find(first)), 0);
  close_tracked(first);
  close_tracked(second);
}

TEST_F(FileOpening, AnswersWrongCallsAsTheKernelDoes) {
  const int fd = open("g", O_RDONLY | O_CREAT);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  char byte = 0;
  EXPECT_EQ(file_write(*file, "x", 1), -EBADF);
  EXPECT_EQ(file_pread(*file, &byte, 1, -1), -EINVAL);
  EXPECT_EQ(file_read(*file, nullptr, 1), 0) << "nothing is to be read, so nothing is copied";
  EXPECT_EQ(file_read(*file, reinterpret_cast<void*>(UINTPTR_MAX), 1), -EFAULT);
  EXPECT_EQ(file_seek(*file, -1, SEEK_SET), -EINVAL);
  EXPECT_EQ(file_seek(*file, 0, 99), -EINVAL);
  EXPECT_EQ(file_truncate(*file, 0), -EINVAL);
  close_tracked(fd);
  EXPECT_EQ(close_tracked(fd), -EBADF);
}

// As a thread does that has found the record before another one closed the file.
TEST_F(FileOpening, LateCallsNeitherWriteNorMoveAnOffset) {
  const int fd = open("late", O_RDWR | O_CREAT);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file_write(*file, "abcdef", 6), 6);
  OpenDescription& description = *file->description;
  ASSERT_EQ(close_tracked(fd), 0);
  description.offset = 3;  // another file's, that has the description next
  char bytes[3] = {};
  EXPECT_EQ(file_read(*file, bytes, 2), -EBADF);
  EXPECT_EQ(file_write(*file, "xy", 2), -EBADF);
  EXPECT_EQ(file_pwrite(*file, "xy", 2, 0), -EBADF);
  const iovec part{bytes, 2};
  EXPECT_EQ(file_readv(*file, &part, 1, -1, 0), -EBADF);
  EXPECT_EQ(file_writev(*file, &part, 1, -1, 0), -EBADF);
  EXPECT_EQ(file_seek(*file, 1, SEEK_CUR), -EBADF);
  EXPECT_EQ(file_sync(*file, false), -EBADF);
  EXPECT_EQ(file_truncate(*file, 0), -EBADF);
  EXPECT_EQ(description.offset.load(), 3U);
}

TEST_F(FileOpening, KeepsAnUnlinkedFileUntilItsLastClose) {
  const int fd = open("h", O_RDWR | O_CREAT);
  OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file_write(*file, "keep", 4), 4);
  ASSERT_EQ(::unlink((root_ + "/h").c_str()), 0);
  char text[5] = {};
  EXPECT_EQ(file_pread(*file, text, 4, 0), 4);
  EXPECT_STREQ(text, "keep");
  EXPECT_EQ(close_tracked(fd), 0);
}

TEST_F(FileOpening, OnlyTheDescriptionThatWasMeantIsHeld) {
  const int fd = open("i", O_RDWR | O_CREAT);
  const OpenFile* file = DescriptorTable::find(fd);
  ASSERT_NE(file, nullptr);
  const DescriptionIndex index = file->index;
  const std::uint32_t generation = file->generation;
  DescriptionTable& descriptions = Session::instance().memory().descriptions();
  const Owner self = Session::instance().self();

  const HoldIndex second = hold_if_live(index, generation);
  ASSERT_NE(second, HoldIndex::kNone);
  EXPECT_FALSE(descriptions.release(second, self).last);
  EXPECT_EQ(hold_if_live(index, generation + 1), HoldIndex::kNone);
  EXPECT_EQ(descriptions.at(index).references.load(), 1u) << "nothing of the attempt is left";

  EXPECT_EQ(close_tracked(fd), 0);
  EXPECT_EQ(hold_if_live(index, generation), HoldIndex::kNone) << "a free record is nobody's";
  EXPECT_EQ(descriptions.at(index).references.load(), 0u);
}

}  // namespace
}  // namespace cairn
