// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/shared_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace cairn {
namespace {

TEST(SharedSegment, NobodyChangesItsSize) {
  auto segment = SharedSegment::create("cairn-test", 4096, HugePages::kNever);
  ASSERT_TRUE(segment.is_ok()) << segment.status().message();
  const int fd = segment.value().fd();
  const auto size = static_cast<off_t>(segment.value().size_bytes());
  for (const off_t other : {off_t{0}, size - 4096, 2 * size}) {
    EXPECT_EQ(::ftruncate(fd, other), -1) << other;
    EXPECT_EQ(errno, EPERM) << other;
  }
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1) << "nor may anybody forbid to write";
  // Pages that nobody needs are given back all the same.
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

// A length that is too large by less than a block must not reach what is mapped behind the segment.
TEST(SharedSegment, NothingIsMappedBehindIt) {
  constexpr std::size_t kPage = 4096;
  auto segment = SharedSegment::create("cairn-test", kPage, HugePages::kNever);
  ASSERT_TRUE(segment.is_ok()) << segment.status().message();
  std::byte* const end = segment.value().base() + segment.value().size_bytes();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (std::size_t at = 0; at < 64 * 1024; at += kPage) {
    EXPECT_EQ(::write(ends[1], end + at, 1), -1) << at;
    EXPECT_EQ(errno, EFAULT) << at;
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace cairn
