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
