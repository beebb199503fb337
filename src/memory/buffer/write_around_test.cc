// SPDX-License-Identifier: Apache-2.0
// A write that goes past the tiers, and a block that comes and goes while it does: what the block
// was filled with must not stay in the store in place of what was written.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::size_t kLength = 5000;

// From here on each pwrite() of this thread waits for the owner of the descriptor that this
// returns (seccomp_unotify(2)). -1 where the kernel does not allow it.
int intercept_writes() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

// Waits for one write, makes it, and calls `before` and `after` around it. False when there is none
// any more.
bool serve_write(int listener, const std::function<void()>& before,
                 const std::function<void()>& after) {
  pollfd entry{listener, POLLIN, 0};
  if (poll(&entry, 1, 10'000) != 1 || (entry.revents & POLLIN) == 0) return false;
  seccomp_notif request{};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return false;
  before();
  const auto& args = request.data.args;
  const ssize_t put = pwrite(static_cast<int>(args[0]), reinterpret_cast<const void*>(args[1]),
                             args[2], static_cast<off_t>(args[3]));
  after();
  seccomp_notif_resp answer{};
  answer.id = request.id;
  answer.val = put;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

class RefusingService final : public testing::AcceptingService {
 public:
  bool hand_over(ObjectIndex, const Backing&) override { return false; }
};

// One process writes past the tiers, because its service does not take its descriptor, another one
// through the buffer.
class WriteAround : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pwrite(fd_, expected_.data(), kLength, 0), static_cast<ssize_t>(kLength));
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actors_[0], file_, status, true);
    memory_.objects().at(index_).clear(kObjectUnlinked);
    refusing_.memory = accepting_.memory = &memory_;
  }
  void TearDown() override {
    if (writer_.joinable()) writer_.join();
    for (Actor& actor : actors_) actor.drop_leases();
    close(listener_.load());
    close(fd_);
  }

  // Begins in a thread, and waits there for each of its writes to be served.
  void begin_write(std::uint64_t offset, const std::string& bytes) {
    expected_.replace(offset, bytes.size(), bytes);
    bytes_ = bytes;
    writer_ = std::thread([this, offset] {
      listener_.store(intercept_writes());
      listener_.notify_all();
      if (listener_.load() < 0) return;
      const ObjectAccess access{actors_[0], index_, file_, refusing_};
      written_ = write_object(access, offset, bytes_.data(), bytes_.size());
    });
    listener_.wait(-2);
    if (listener_.load() < 0) GTEST_SKIP() << "seccomp: errno " << errno;
  }
  // A write to a guarded file, whose page a flush stores once more.
  void begin_write_beside_a_flush() {
    put(100, "other");
    memory_.objects().at(index_).set(kObjectGuarded);
    begin_write(0, "new");
    if (IsSkipped()) return;
    EXPECT_TRUE(serve_write(
        listener_.load(), [] {}, [&] { EXPECT_EQ(sync_object(buffered(), false, nullptr), 0); }));
  }
  ssize_t end_write() {
    writer_.join();
    return written_;
  }

  void put(std::uint64_t offset, const std::string& bytes) {
    expected_.replace(offset, bytes.size(), bytes);
    ASSERT_EQ(write_object(buffered(), offset, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  void store_and_drop() {
    ASSERT_EQ(sync_object(buffered(), false, nullptr), 0);
    ASSERT_EQ(drop_blocks(buffered(), 0, UINT64_MAX, false, PlacementReason::kAsked), 0);
  }
  void expect_stored() {
    std::string stored(kLength, 0);
    ASSERT_EQ(pread(fd_, stored.data(), kLength, 0), static_cast<ssize_t>(kLength));
    for (std::size_t at = 0; at < kLength; ++at)
      ASSERT_EQ(stored[at], expected_[at]) << "at " << at;
  }
  ObjectAccess buffered() { return ObjectAccess{actors_[1], index_, file_, accepting_}; }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(16 * testing::kMiB));
  std::array<Actor, 2> actors_{testing::make_actor(memory_), testing::make_actor(memory_)};
  int fd_ = testing::make_unnamed_file();
  PosixBacking file_{fd_, O_RDWR};
  ObjectIndex index_ = ObjectIndex::kNone;
  RefusingService refusing_;
  testing::AcceptingService accepting_;
  std::string expected_ = std::string(kLength, 'o');
  std::atomic<int> listener_{-2};
  // Not the thread's own: ThreadSanitizer sees no order in seccomp's answers.
  std::string bytes_;
  ssize_t written_ = 0;
  std::thread writer_;
};

void nothing() {}

TEST_F(WriteAround, IsNotUndoneByABlockThatComesAndGoesMeanwhile) {
  begin_write(0, "new");
  if (IsSkipped()) return;
  EXPECT_TRUE(serve_write(listener_.load(), [&] { put(100, "other"); }, [&] { store_and_drop(); }));
  EXPECT_TRUE(serve_write(listener_.load(), nothing, nothing)) << "the write is made once more";
  EXPECT_EQ(end_write(), 3);
  expect_stored();
}

// The second time with other pages than the first.
TEST_F(WriteAround, IsNotUndoneByABlockThatComesTwice) {
  begin_write(kPageBytes - 3, "newnew");
  if (IsSkipped()) return;
  EXPECT_TRUE(serve_write(
      listener_.load(), [&] { put(100, "other"); },
      [&] {
        store_and_drop();
        put(kPageBytes + 100, "another");
      }));
  EXPECT_TRUE(serve_write(listener_.load(), nothing, nothing)) << "into the first page";
  EXPECT_EQ(end_write(), 6);
  store_and_drop();
  expect_stored();
}

// A flush that was on its way when the file became one whose writes the kernel looks at.
TEST_F(WriteAround, OfAGuardedFileIsNotUndoneByAFlush) {
  begin_write_beside_a_flush();
  if (IsSkipped()) return;
  EXPECT_TRUE(serve_write(listener_.load(), nothing, nothing)) << "the write is made once more";
  std::thread rest([&] {
    while (serve_write(listener_.load(), nothing, nothing)) {
    }
  });
  EXPECT_EQ(end_write(), 3);
  store_and_drop();
  expect_stored();
  rest.join();
}

// The block comes back after each of its stores, and is clean each time.
TEST_F(WriteAround, OfAGuardedFileEndsAlthoughReadersBringItsBlockBack) {
  constexpr unsigned kStoresMax = 10;
  begin_write_beside_a_flush();
  if (IsSkipped()) return;
  std::atomic<unsigned> stores{1};
  std::vector<std::future<void>> readers;
  // A reader that waits for the lock of the block is not waited for.
  const auto bring_back = [&] {
    if (++stores >= kStoresMax) return;
    readers.push_back(std::async(std::launch::async, [&] {
      char bytes[3];
      EXPECT_EQ(read_object(buffered(), 0, bytes, sizeof bytes), 3);
    }));
    (void)readers.back().wait_for(std::chrono::milliseconds(200));
  };
  std::thread rest([&] {
    while (serve_write(listener_.load(), nothing, bring_back)) {
    }
  });
  EXPECT_EQ(end_write(), 3);
  rest.join();
  for (std::future<void>& reader : readers) reader.get();
  EXPECT_EQ(stores.load(), 2U) << "the second one is made under the lock of the block";
  store_and_drop();
  expect_stored();
}

}  // namespace
}  // namespace cairn
