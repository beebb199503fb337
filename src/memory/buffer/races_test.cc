// SPDX-License-Identifier: Apache-2.0
// Two calls on one file at the same time, thousands of times: what one of them promised must hold
// whatever the other did.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

class Races : public ::testing::Test {
 protected:
  void SetUp() override { open(testing::make_unnamed_file()); }
  void TearDown() override {
    for (Actor& actor : actors_) actor.drop_leases();
    close(fd_);
  }

  void open(int fd) {
    fd_ = fd;
    ASSERT_GE(fd_, 0);
    if (!memory_.has_value()) {
      memory_ = testing::make_memory(testing::memory_only(16 * testing::kMiB));
      service_.memory = &*memory_;
      for (unsigned at = 0; at < actors_.size(); ++at) {
        actors_[at] = testing::make_actor(*memory_);
        actors_[at].counters = &memory_->slot(1).shards[at];
      }
    }
    file_.emplace(fd_, O_RDWR);
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actors_[0], *file_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
    object().clear(kObjectUnlinked);
  }
  Object& object() { return memory_->objects().at(index_); }
  // Each thread works with one of its own.
  ObjectAccess access(unsigned thread) {
    return ObjectAccess{actors_[thread], index_, *file_, service_};
  }
  void put(unsigned thread, std::uint64_t offset, const std::string& bytes) {
    ASSERT_EQ(write_object(access(thread), offset, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string get(unsigned thread, std::uint64_t offset, std::size_t length) {
    std::string bytes(length, 'x');
    const ssize_t got = read_object(access(thread), offset, bytes.data(), length);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  // Calls mine() for as long as such a test may take, or until something is wrong, while another
  // thread calls others() all the time.
  void beside(const std::function<void()>& others, const std::function<void()>& mine) {
    std::atomic<bool> ends{false};
    std::thread thread([&] {
      while (!ends.load() && !HasFailure()) others();
    });
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(1500);
    while (Clock::now() < end && !HasFailure() && !IsSkipped()) mine();
    ends.store(true);
    thread.join();
  }
  static void linger() {
    thread_local std::minstd_rand random{std::random_device{}()};
    for (unsigned left = random() % 2000; left > 0; --left) cpu_relax();
  }

  int fd_ = -1;
  std::optional<NodeMemory> memory_;
  std::optional<PosixBacking> file_;
  testing::AcceptingService service_;
  std::array<Actor, 2> actors_;
  ObjectIndex index_ = ObjectIndex::kNone;
};

std::string pattern(std::size_t length) {
  std::string bytes(length, 0);
  for (std::size_t at = 0; at < length; ++at) bytes[at] = static_cast<char>('A' + at % 23);
  return bytes;
}

TEST_F(Races, FsyncStoresWhatWasWrittenWhileItsBlockGrows) {
  constexpr std::size_t kLength = 40'000;
  const std::string bytes = pattern(kLength + 2000);
  std::string stored(bytes.size(), 0);
  std::minstd_rand random{1};
  // The writer begins at the front when there is nothing.
  std::atomic<std::size_t> written{kLength};
  beside(
      [&] {
        const std::size_t at = written.load();
        if (at >= kLength) return;
        const std::size_t length = 500 + random() % 1500;
        put(1, at, bytes.substr(at, length));
        written.store(at + length);
      },
      [&] {
        const std::size_t promised = written.load();
        if (promised >= kLength) {
          ASSERT_EQ(truncate_object(access(0), 0), 0);
          written.store(0);
          return;
        }
        ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
        const ssize_t got = pread(fd_, stored.data(), stored.size(), 0);
        ASSERT_GE(got, static_cast<ssize_t>(promised));
        ASSERT_EQ(std::memcmp(stored.data(), bytes.data(), promised), 0) << promised;
      });
}

TEST_F(Races, NothingOfATruncatedFileSurvivesTheGrowthOfItsBlock) {
  const std::string old(4000, 'O');
  beside([&] { put(1, 5000, "W"); },
         [&] {
           put(0, 0, old);
           linger();
           ASSERT_EQ(truncate_object(access(0), 0), 0);
           const std::string now = get(0, 0, old.size());
           ASSERT_EQ(now.find_first_not_of('\0'), std::string::npos) << now.size();
         });
}

TEST_F(Races, NothingOfATruncatedFileComesBackWithAWrite) {
  constexpr std::size_t kAt = 500'000;
  const std::string old(1 << 20, 'O');
  const std::string piece = "0123456789";
  std::string stored(kAt, 0);
  beside([&] { put(1, kAt, piece); },
         [&] {
           put(0, 0, old);
           ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
           ASSERT_EQ(truncate_object(access(0), 0), 0);
           const std::string now = get(0, 0, kAt);
           ASSERT_EQ(now.find_first_not_of('\0'), std::string::npos);
           // Nor behind the write, nor in the store.
           ASSERT_EQ(get(0, kAt + piece.size(), 1000), "");
           ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
           const ssize_t got = pread(fd_, stored.data(), stored.size(), 0);
           ASSERT_EQ(stored.substr(0, static_cast<std::size_t>(got)).find_first_not_of('\0'),
                     std::string::npos);
         });
}

// The same at the worst moment: the blocks are gone, and the truncation waits for the last one that
// it has to cut.
TEST_F(Races, AWriteInTheMiddleOfATruncationBringsNothingBack) {
  constexpr std::size_t kAt = 500'000;
  put(0, 0, std::string(1 << 20, 'O'));
  ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
  const auto wait_for_blocks = [&](std::uint32_t count) {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
    while (object().blocks.load() != count && Clock::now() < end) std::this_thread::yield();
  };
  LockedBlock last = lock_resident(actors_[0], index_, static_cast<BlockNumber>(0));
  std::thread truncation([&] { EXPECT_EQ(truncate_object(access(1), 100), 0); });
  wait_for_blocks(1);
  ASSERT_EQ(object().blocks.load(), 1u);
  Actor third = testing::make_actor(*memory_);
  third.counters = &memory_->slot(1).shards[2];
  std::thread writer([&] {
    const ObjectAccess its{third, index_, *file_, service_};
    EXPECT_EQ(write_object(its, kAt, "W", 1), 1);
  });
  wait_for_blocks(2);
  last.unlock();
  truncation.join();
  writer.join();
  const std::string now = get(0, 0, kAt + 1);
  EXPECT_EQ(now.substr(0, 100), std::string(100, 'O'));
  EXPECT_EQ(now.find_first_not_of('\0', 100), kAt);
  third.drop_leases();
}

TEST_F(Races, AnAppendGoesToTheEndThatTheFileHas) {
  const std::string line = "a line of a log\n";
  std::atomic<bool> pauses{false};
  std::atomic<bool> rests{false};
  beside(
      [&] {
        rests.store(pauses.load());
        if (rests.load()) return std::this_thread::yield();
        std::uint64_t where = 0;
        ASSERT_EQ(append_object(access(1), line.data(), line.size(), &where),
                  static_cast<ssize_t>(line.size()));
      },
      [&] {
        pauses.store(false);
        linger();
        ASSERT_EQ(truncate_object(access(0), 0), 0);
        pauses.store(true);
        while (!rests.load()) std::this_thread::yield();
        const std::string now = get(0, 0, 1 << 20);
        ASSERT_EQ(now.size() % line.size(), 0u) << now.size();
        for (std::size_t at = 0; at < now.size(); at += line.size())
          ASSERT_EQ(now.substr(at, line.size()), line) << at << " of " << now.size();
        rests.store(false);
      });
}

TEST_F(Races, NothingOfAPunchedHoleIsReadAgain) {
  constexpr std::size_t kLength = 256 * 1024;
  const std::string old(kLength, 'O');
  put(0, 0, old);
  std::minstd_rand random{1};
  beside([&] { (void)get(1, random() % kLength, 100); },
         [&] {
           put(0, 0, old);
           constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
           const int error = allocate_object(access(0), kPunch, 0, kLength);
           if (error == -EOPNOTSUPP) GTEST_SKIP() << "this file system punches no holes";
           ASSERT_EQ(error, 0);
           ASSERT_EQ(get(0, 0, kLength).find_first_not_of('\0'), std::string::npos);
         });
}

// A program's own writes are what it reads, while somebody else maps the file and unmaps it.
TEST_F(Races, AWriteIsReadAndStoredWhileThroughModeBeginsAndEnds) {
  put(0, 0, std::string(8192, 'O'));
  std::uint64_t value = 0;
  const auto enter_and_leave = [&] {
    EXPECT_EQ(enter_through(access(1)), 0);
    linger();
    leave_through(actors_[1], index_);
    linger();
  };
  beside(enter_and_leave, [&] {
    ++value;
    const std::uint64_t offset = 8 * (value % 500);
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    put(0, offset, bytes);
    ASSERT_EQ(get(0, offset, sizeof value), bytes) << value;
    if (value % 16 != 0) return;
    ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
    std::string stored(sizeof value, 0);
    ASSERT_EQ(pread(fd_, stored.data(), stored.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(stored.size()));
    ASSERT_EQ(stored, bytes) << value;
  });
}

// Somebody has counted himself in, and has not stored yet what came after his first look.
TEST_F(Races, WhatIsStillDirtyWhenThroughModeBeginsIsReadWrittenAndStored) {
  const auto stored = [&] {
    std::string bytes(3, 0);
    EXPECT_EQ(pread(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  };
  put(0, 0, "one");
  ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
  put(0, 0, "two");
  count_through(actors_[1], index_);
  EXPECT_EQ(get(0, 0, 3), "two");
  leave_through(actors_[1], index_);

  put(0, 0, "333");
  count_through(actors_[1], index_);
  put(0, 0, "444");
  EXPECT_EQ(finish_entering(access(1), 0, UINT64_MAX), 0);
  EXPECT_EQ(stored(), "444");
  leave_through(actors_[1], index_);

  put(0, 0, "555");
  count_through(actors_[1], index_);
  EXPECT_EQ(sync_object(access(0), false, nullptr), 0);
  EXPECT_EQ(stored(), "555");
  leave_through(actors_[1], index_);
}

TEST_F(Races, AFileWhoseThroughModeHasJustBegunIsNotShorterThanWhatWasWritten) {
  put(0, 0, "stored");
  ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
  put(0, 6, " and not");
  count_through(actors_[1], index_);
  StoreStatus status;
  ASSERT_EQ(store_status(fd_, &status), 0);
  ASSERT_EQ(status.stamp.size, 6U);
  EXPECT_EQ(visible_stamp(object(), status.stamp).size, 14U);
  ASSERT_EQ(finish_entering(access(1), 0, UINT64_MAX), 0);
  ASSERT_EQ(ftruncate(fd_, 3), 0);
  ASSERT_EQ(store_status(fd_, &status), 0);
  EXPECT_EQ(visible_stamp(object(), status.stamp).size, 3U) << "the kernel has cut it";
  abandon_through(actors_[1], index_);
}

// The last user of the kernel's had no descriptor to see what it has made of the file.
TEST_F(Races, WhatTheKernelAppendedIsKnownToThoseWhoHaveTheFileOpen) {
  const auto append_past_the_buffers = [&](const std::string& bytes) {
    ASSERT_EQ(enter_through(access(1)), 0);
    ASSERT_EQ(pwrite(fd_, bytes.data(), bytes.size(), lseek(fd_, 0, SEEK_END)),
              static_cast<ssize_t>(bytes.size()));
    abandon_through(actors_[1], index_);
  };
  put(0, 0, "one");
  append_past_the_buffers("two");
  EXPECT_EQ(get(0, 0, 100), "onetwo");
  EXPECT_TRUE(object().takes_blocks()) << "it is buffered again";

  append_past_the_buffers("three");
  std::uint64_t offset = 0;
  ASSERT_EQ(append_object(access(0), "four", 4, &offset), 4);
  EXPECT_EQ(offset, 11U);

  append_past_the_buffers(std::string(100'000, 'z'));
  put(0, 200'000, "end");
  EXPECT_EQ(get(0, 0, 300'000),
            "onetwothreefour" + std::string(100'000, 'z') + std::string(99'985, 0) + "end");

  append_past_the_buffers("x");
  ASSERT_EQ(truncate_object(access(0), 15), 0);
  EXPECT_EQ(get(0, 0, 100), "onetwothreefour");
  EXPECT_TRUE(object().takes_blocks());

  append_past_the_buffers("five");
  ASSERT_EQ(enter_through(access(1)), 0);
  close_object(access(0), true);
  abandon_through(actors_[1], index_);
  EXPECT_EQ(object().through.load(), 0U) << "nobody has it open";
  StoreStatus status;
  ASSERT_EQ(store_status(fd_, &status), 0);
  ASSERT_EQ(open_object(actors_[0], *file_, status, true), index_);
  append_past_the_buffers("six");
  close_object(access(0), true);
  EXPECT_EQ(object().through.load(), 0U) << "its last one has closed it";
}

TEST_F(Races, AReadThatThroughModeOvertakesSeesWhatIsNotStoredYet) {
  put(0, 0, "dirty!");
  std::string seen;
  LockedBlock block = lock_resident(actors_[0], index_, BlockNumber{0});
  ASSERT_TRUE(block);
  std::thread reader([&] { seen = get(1, 0, 6); });
  // Until it has found the file buffered, and waits for the block.
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  count_through(actors_[0], index_);
  block.unlock();
  reader.join();
  EXPECT_EQ(seen, "dirty!");
  leave_through(actors_[0], index_);
}

// It is about to get a name, by which others open it.
TEST_F(Races, AFileWithoutANameIsKnownAsLongAsTheKernelWorksOnIt) {
  object().set(kObjectUnlinked);
  ASSERT_EQ(enter_through(access(1)), 0);
  close_object(access(0), true);
  StoreStatus status;
  ASSERT_EQ(store_status(fd_, &status), 0);
  EXPECT_EQ(open_object(actors_[0], *file_, status, true), index_);
  EXPECT_FALSE(object().takes_blocks());
  abandon_through(actors_[1], index_);
}

TEST_F(Races, WhoLookedBeforeTheKernelsLastUserWroteLooksAgain) {
  put(0, 0, "before");
  ASSERT_EQ(enter_through(access(1)), 0);
  close_object(access(0), true);
  StoreStatus status;
  ASSERT_EQ(store_status(fd_, &status), 0);
  ASSERT_EQ(pwrite(fd_, " and after", 10, 6), 10);
  abandon_through(actors_[1], index_);
  ASSERT_EQ(open_object(actors_[0], *file_, status, true), index_);
  EXPECT_EQ(get(0, 0, 100), "before and after");
}

// A late process must not take the store's end for the file's: others write behind it by then.
TEST_F(Races, WhoComesLateToWhatTheKernelHasLeftCutsNothing) {
  ASSERT_EQ(enter_through(access(0)), 0);
  ASSERT_EQ(pwrite(fd_, "kernel", 6, 0), 6);
  abandon_through(actors_[0], index_);
  std::thread opener;
  {
    const OwnedGuard guard(object().lock, actors_[0].self, actors_[0].owners());
    const std::uint32_t opens = object().opens.load();
    opener = std::thread([&] {
      StoreStatus status;
      ASSERT_EQ(store_status(fd_, &status), 0);
      EXPECT_EQ(open_object(actors_[1], *file_, status, false), index_);
    });
    while (object().opens.load() == opens) std::this_thread::yield();
    // Until it has seen in which state the file is, and waits for the lock.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ASSERT_TRUE(adopt_kernel_state(access(0)));
    object().through.fetch_sub(kThroughAbandoned);
    object().shape_sequence.fetch_add(Object::kThroughEnded);
    put(0, 6, " and buffer");
  }
  opener.join();
  EXPECT_EQ(get(0, 0, 100), "kernel and buffer");
}

// Changes the mode of the file in the middle of a write that has seen none in the way.
class GuardingService final : public testing::AcceptingService {
 public:
  GuardingService(Actor& actor, ObjectIndex index, PosixBacking& file)
      : actor_(actor), index_(index), file_(file) {
    memory = actor.memory;
  }
  bool hand_over(ObjectIndex index, const Backing& backing) override {
    EXPECT_TRUE(testing::AcceptingService::hand_over(index, backing));
    actor_.object(index_).set(kObjectGuarded);
    EXPECT_EQ(enter_through({actor_, index_, file_, *this}), 0);
    EXPECT_EQ(fchmod(backing.descriptor(), 04755), 0);
    leave_through(actor_, index_);
    return true;
  }

 private:
  Actor& actor_;
  const ObjectIndex index_;
  PosixBacking& file_;
};

// The service has no right to keep set-id bits, so it must not store what a program with that right
// wrote.
TEST_F(Races, NothingStaysBufferedOfAFileThatGetsSetIdBitsMeanwhile) {
  GuardingService service(actors_[1], index_, *file_);
  object().clear(kObjectHandedOver);
  const ObjectAccess its{actors_[0], index_, *file_, service};
  EXPECT_EQ(write_object(its, 0, "bytes", 5), 5);
  EXPECT_TRUE(object().has(kObjectGuarded));
  EXPECT_EQ(object().dirty_blocks.load(), 0u);
  char stored[5] = {};
  EXPECT_EQ(pread(fd_, stored, sizeof stored, 0), 5);
  EXPECT_EQ(std::string(stored, 5), "bytes");
}

TEST_F(Races, ATruncationThatTheStoreRefusesChangesNothing) {
  close(fd_);
  const int sealed = memfd_create("cairn-races", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  open(sealed);
  const std::string bytes = pattern(100'000);
  put(0, 0, bytes.substr(0, 50'000));
  ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
  put(0, 50'000, bytes.substr(50'000));
  ASSERT_EQ(fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(truncate_object(access(0), 10), -EPERM);
  EXPECT_EQ(object().size.load(), bytes.size());
  EXPECT_EQ(get(0, 0, bytes.size()), bytes);
  ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
  std::string stored(bytes.size(), 0);
  ASSERT_EQ(pread(sealed, stored.data(), stored.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(stored == bytes);
}

// The process died after the store had been cut, and before or after the size was set.
TEST_F(Races, ATruncationWhoseProcessDiedIsEndedByTheNextChange) {
  for (const bool knows_size : {false, true}) {
    ASSERT_EQ(truncate_object(access(0), 0), 0);
    put(0, 0, std::string(200'000, 'O'));
    ASSERT_EQ(sync_object(access(0), false, nullptr), 0);
    object().shape_sequence.fetch_add(1);
    ASSERT_EQ(ftruncate(fd_, 10), 0);
    if (knows_size) object().size.store(10);
    put(0, 150'000, "W");
    ASSERT_EQ(object().size.load(), 150'001u);
    const std::string now = get(0, 0, 150'001);
    EXPECT_EQ(now.substr(0, 10), std::string(10, 'O'));
    EXPECT_EQ(now.find_first_not_of('\0', 10), 150'000u);
    EXPECT_FALSE(object().is_changing_shape());
  }
}

}  // namespace
}  // namespace cairn
