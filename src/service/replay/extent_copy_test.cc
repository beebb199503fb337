// SPDX-License-Identifier: Apache-2.0
#include "service/replay/extent_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/temporary_folder.h"
#include "base/testing/without_threads.h"

namespace cairn::durable {
namespace {

// The log may let go of a segment between the reading of its records and the copying.
TEST(ExtentCopy, ARecordWhoseSegmentIsGoneIsDamaged) {
  PendingFile file;
  file.state.size = 8192;
  file.records.push_back({.segment = 7, .at = 4096, .bytes = 4096, .sum = 1, .lsn = Lsn{3}});
  file.extents[4096] = {.end = 8192, .record = 0, .skip = 0};
  const std::vector<LogSegment> none;
  const cairn::testing::TemporaryFolder folder("extents");
  const int fd = ::open((folder.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const CopyResult result = ExtentCopy(1, none, [](std::uint64_t) {}).run(file, fd);
  ASSERT_EQ(result.damaged.size(), 1U);
  EXPECT_EQ(result.damaged[0], std::pair(std::uint64_t{4096}, std::uint64_t{8192}));
  EXPECT_EQ(result.error, 0);
  struct stat status{};
  ASSERT_EQ(::fstat(fd, &status), 0);
  EXPECT_EQ(status.st_size, 0) << "nothing was written";
  ::close(fd);
}

class CountedFile final : public LogFile {
 public:
  explicit CountedFile(int* let_go) : let_go_(let_go) {}
  std::int64_t size() override { return 4096; }
  std::int64_t read(std::span<std::byte> out, std::uint64_t) override {
    return static_cast<std::int64_t>(out.size());
  }
  void let_go() override { ++*let_go_; }
  int write(std::span<const std::byte>, std::uint64_t) override { return -EBADF; }
  int flush() override { return -EBADF; }
  int lock() override { return 0; }

 private:
  int* const let_go_;
};

// The kernel need not remember what was read of the log.
TEST(ExtentCopy, ASegmentIsLetGoWhenTheNextIsRead) {
  PendingFile file;
  file.state.size = 3 * 4096;
  std::vector<LogSegment> segments(3);
  int let_go[3] = {};
  for (std::uint32_t number = 0; number < 3; ++number) {
    segments[number].header.segment = number + 7;
    segments[number].file = std::make_unique<CountedFile>(&let_go[number]);
    const std::uint64_t begin = std::uint64_t{number} * 4096;
    file.records.push_back(
        {.segment = number + 7, .at = 0, .bytes = 4096, .sum = 1, .lsn = Lsn{number + 3}});
    file.extents[begin] = {.end = begin + 4096, .record = number, .skip = 0};
  }
  (void)ExtentCopy(1, segments, [](std::uint64_t) {}).run(file, -1);
  EXPECT_EQ(let_go[0], 1);
  EXPECT_EQ(let_go[1], 1);
  EXPECT_EQ(let_go[2], 0);
}

TEST(ExtentCopy, MuchIsCopiedWhereNoThreadCanBeStarted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody whom limits concern";
  PendingFile file;
  file.state.size = 3 * kCopyChunkBytes;
  file.records.push_back({.segment = 7, .at = 0, .bytes = 0, .sum = 1, .lsn = Lsn{3}});
  file.extents[0] = {.end = file.state.size, .record = 0, .skip = 0};
  file.records[0].bytes = static_cast<std::uint32_t>(file.state.size);
  const std::vector<LogSegment> none;
  const int damaged = cairn::testing::run_without_threads([&] {
    return static_cast<int>(
        ExtentCopy(1, none, [](std::uint64_t) {}).run(file, STDOUT_FILENO).damaged.size());
  });
  EXPECT_EQ(damaged, 1);
}

}  // namespace
}  // namespace cairn::durable
