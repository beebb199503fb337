// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/uring_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "memory/tiers/failure_board.h"
#include "memory/tiers/file_tier.h"
#include "memory/tiers/page_sums.h"
#include "service/organizer/device_probe.h"

namespace cairn {
namespace {

class UringWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* place = std::getenv("TEST_TMPDIR");
    auto tier =
        FileTier::create(place != nullptr ? place : "/tmp", PoolIdentity{{1, 2}, 1, kBlocks});
    ASSERT_TRUE(tier.is_ok()) << tier.status().message();
    tier_ = std::move(tier.value());
    memory_ = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlocks * kBlockBytes));
  }
  void TearDown() override { std::free(memory_); }

  // Each block with its own number.
  std::vector<iovec> make_blocks() {
    std::vector<iovec> parts;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::memset(memory_ + block * kBlockBytes, static_cast<int>(block + 1), kBlockBytes);
      parts.push_back({memory_ + block * kBlockBytes, kBlockBytes});
    }
    return parts;
  }
  TierPlace blocks_from(std::size_t first, std::size_t count) const {
    return TierPlace{&tier_, TierExtent{first * kBlockBytes, count * kBlockBytes}};
  }
  void expect_all_written() {
    auto* read = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlockBytes));
    for (std::size_t block = 0; block < kBlocks; ++block) {
      ASSERT_EQ(blocks_from(block, 1).read(read), 0);
      EXPECT_EQ(std::memcmp(read, memory_ + block * kBlockBytes, kBlockBytes), 0) << block;
    }
    std::free(read);
  }

  static constexpr std::size_t kBlocks = 150;  // more than two rings full
  FileTier tier_;
  std::byte* memory_ = nullptr;
};

TEST_F(UringWriterTest, WritesEveryBlockOfALargeBatch) {
  std::vector<BatchWrite> writes;
  std::vector<iovec> parts = make_blocks();
  // Runs of one, two and three blocks.
  for (std::size_t block = 0, run = 1; block < kBlocks; block += run, run = run % 3 + 1) {
    run = std::min(run, kBlocks - block);
    writes.push_back(BatchWrite{blocks_from(block, run), std::span(&parts[block], run), -1});
  }
  UringWriter writer;
  writer.write_all(writes);
  for (const BatchWrite& write : writes) EXPECT_EQ(write.result, 0);
  expect_all_written();
}

TEST_F(UringWriterTest, BatchesAreWaitedForOneByOne) {
  std::array<std::vector<BatchWrite>, 2> batches;
  std::vector<iovec> parts = make_blocks();
  for (std::size_t block = 0; block < kBlocks; ++block) {
    batches[block % 2].push_back(
        BatchWrite{blocks_from(block, 1), std::span(&parts[block], 1), -1});
  }
  UringWriter writer;
  for (std::vector<BatchWrite>& batch : batches) writer.start(batch);
  for (std::vector<BatchWrite>& batch : batches) {
    writer.wait(batch);
    for (const BatchWrite& write : batch) EXPECT_EQ(write.result, 0);
  }
  expect_all_written();
}

// More than a ring full: some have ended before the last of them is started.
TEST_F(UringWriterTest, EveryPageOfALargeBatchHasItsChecksum) {
  std::vector<PageSums::Word> words(kBlocks * kBlockBytes / kPageBytes);
  const PageSums sums(words.data(), words.size());
  tier_.set_sums(sums);
  std::vector<BatchWrite> writes;
  std::vector<iovec> parts = make_blocks();
  for (std::size_t block = 0; block < kBlocks; ++block)
    writes.push_back(BatchWrite{blocks_from(block, 1), std::span(&parts[block], 1), -1});
  UringWriter writer;
  writer.write_all(writes);
  for (std::size_t at = 0; at < kBlocks * kBlockBytes; at += kPageBytes)
    ASSERT_EQ(sums.of(at), page_sum(memory_ + at)) << "block " << at / kBlockBytes;
  tier_.set_sums(PageSums());
}

TEST_F(UringWriterTest, ReportsTheErrorOfOneWriteAndDoesTheOthers) {
  const FileTier unwritable(::open("/dev/null", O_RDONLY | O_CLOEXEC), kBlockBytes);
  std::memset(memory_, 1, 2 * kBlockBytes);
  const iovec part{memory_, kBlockBytes};
  std::vector<BatchWrite> writes = {
      BatchWrite{TierPlace{&unwritable, {0, kBlockBytes}}, std::span(&part, 1), 0},
      BatchWrite{blocks_from(0, 1), std::span(&part, 1), -1}};
  UringWriter writer;
  writer.write_all(writes);
  EXPECT_EQ(writes[0].result, -EBADF);
  EXPECT_EQ(writes[1].result, 0);
}

// A full pipe takes nothing, and a write to it waits.
class HangingTier {
 public:
  HangingTier() {
    ::signal(SIGPIPE, SIG_IGN);  // for the write that is left to the kernel
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_GE(::fcntl(ends_[1], F_SETPIPE_SZ, kWaiting), 0);
    const std::array<char, kPageBytes> page{};
    while (::write(ends_[1], page.data(), page.size()) > 0) {
    }
    EXPECT_EQ(::fcntl(ends_[1], F_SETFL, 0), 0);
    tier_ = FileTier(ends_[1], kBlockBytes);
    tier_.count_failures({&board_, TierId{1}});
  }
  ~HangingTier() { ::close(ends_[0]); }

  const FileTier& tier() const { return tier_; }
  const FailureBoard& board() const { return board_; }
  // It answers again: somebody reads what has been written.
  void answer() const {
    EXPECT_EQ(::fcntl(ends_[0], F_SETFL, 0), 0);
    std::vector<char> bytes(kBlockBytes);
    for (std::size_t left = kBlockBytes + kWaiting; left > 0;) {
      const ssize_t got = ::read(ends_[0], bytes.data(), std::min(left, bytes.size()));
      if (got <= 0) break;
      left -= static_cast<std::size_t>(got);
    }
  }

 private:
  static constexpr int kWaiting = 65536;  // bytes that the full pipe has

  int ends_[2] = {-1, -1};
  FailureBoard board_{};
  FileTier tier_;
};

TEST_F(UringWriterTest, ADeviceThatHangsIsWaitedForAWhileAndAskedNoMore) {
  const HangingTier hanging;
  UringWriter writer(std::chrono::milliseconds(100));
  if (!writer.has_ring()) GTEST_SKIP() << "no io_uring";
  std::memset(memory_, 1, 2 * kBlockBytes);
  const iovec part{memory_, kBlockBytes};
  std::vector<BatchWrite> writes = {
      BatchWrite{TierPlace{&hanging.tier(), {0, kBlockBytes}}, std::span(&part, 1), 0},
      BatchWrite{blocks_from(0, 1), std::span(&part, 1), -1}};
  writer.write_all(writes);
  EXPECT_EQ(writes[0].result, -ETIMEDOUT);
  EXPECT_EQ(writes[1].result, 0);
  EXPECT_TRUE(hanging.board().hangs(TierId{1}));
  EXPECT_TRUE(hanging.board().tiers[1].is_failing(0));
  EXPECT_EQ(hanging.board().tiers[1].count.load(), 1U);
  writer.write_all(writes);
  EXPECT_EQ(writes[0].result, -ETIMEDOUT);
  EXPECT_EQ(writes[1].result, 0) << "by a ring of its own";
  EXPECT_EQ(hanging.board().tiers[1].count.load(), 1U) << "it was not asked again";
}

// A service that was stopped for longer than its patience finds the answers when it goes on. No
// patience at all stands for that here.
TEST_F(UringWriterTest, AnAnswerThatIsThereCountsAlsoWhenThePatienceIsOver) {
  FailureBoard board{};
  tier_.count_failures({&board, TierId{1}});
  UringWriter writer(std::chrono::milliseconds(0));
  if (!writer.has_ring()) GTEST_SKIP() << "no io_uring";
  std::vector<iovec> parts = make_blocks();
  std::vector<BatchWrite> writes = {
      BatchWrite{blocks_from(0, kBlocks), std::span(parts.data(), kBlocks), -1}};
  writer.write_all(writes);
  EXPECT_EQ(writes[0].result, 0);
  EXPECT_FALSE(board.hangs(TierId{1}));
  expect_all_written();
  tier_.count_failures({});
}

TEST_F(UringWriterTest, ADeviceThatAnswersSoonAfterThePatienceDoesNotHang) {
  const HangingTier hanging;
  UringWriter writer(std::chrono::milliseconds(0));
  if (!writer.has_ring()) GTEST_SKIP() << "no io_uring";
  std::memset(memory_, 1, kBlockBytes);
  const iovec part{memory_, kBlockBytes};
  std::vector<BatchWrite> writes = {
      BatchWrite{TierPlace{&hanging.tier(), {0, kBlockBytes}}, std::span(&part, 1), 0}};
  writer.start(writes);
  std::thread device([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    hanging.answer();
  });
  writer.wait(writes);
  device.join();
  EXPECT_EQ(writes[0].result, 0);
  EXPECT_FALSE(hanging.board().hangs(TierId{1}));
}

TEST(DeviceProbe, HearsWhenTheDeviceAnswersAndWaitsForNobody) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileTier tier(ends[0], kBlockBytes);
  if (!UringWriter().has_ring()) GTEST_SKIP() << "no io_uring";
  DeviceProbe probe(tier);
  EXPECT_FALSE(probe.has_answered());
  EXPECT_FALSE(probe.has_answered());
  const std::array<char, kPageBytes> page{};
  ASSERT_EQ(::write(ends[1], page.data(), page.size()), static_cast<ssize_t>(page.size()));
  bool has_answered = false;
  for (int look = 0; look < 5000 && !has_answered; ++look) {
    ::usleep(1000);
    has_answered = probe.has_answered();
  }
  EXPECT_TRUE(has_answered);
  ::close(ends[1]);
}

// From here on, for the calling thread, as in many containers.
void have_no_io_uring() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(steps)), steps};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

// Nobody could ever find that it answers, and what is dirty there would be out of reach.
TEST(DeviceProbe, WhereNobodyCanAskTheDeviceCountsAsAnswering) {
  const FileTier tier(::open("/dev/zero", O_RDONLY | O_CLOEXEC), kBlockBytes);
  std::thread([&] {
    have_no_io_uring();
    DeviceProbe probe(tier);
    EXPECT_TRUE(probe.has_answered());
  }).join();
}

}  // namespace
}  // namespace cairn
