// SPDX-License-Identifier: Apache-2.0
// Processes that die in the middle of a change of the table of objects: real ones, killed with
// SIGKILL after each step that the change shows.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>

#include "memory/arena/testing/death.h"
#include "memory/catalog/object_table.h"

namespace cairn {
namespace {

constexpr std::uint32_t kCapacity = 16;
constexpr std::uint64_t kLines = 8;

struct SharedTable {
  std::array<Object, kCapacity> objects{};
  std::array<HashLine, kLines> lines{};
  std::array<std::atomic<std::uint32_t>, 16> generations{};
  ObjectBoard board{};
  UnservedBoard unserved{};
};

using testing::Death;

class ObjectDeaths : public ::testing::Test {
 protected:
  void SetUp() override {
    void* mapped = ::mmap(nullptr, sizeof(SharedTable), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    shared_ = static_cast<SharedTable*>(mapped);
    clear();
  }
  void TearDown() override { ::munmap(shared_, sizeof(SharedTable)); }

  void clear() {
    new (shared_) SharedTable;
    owners_ = OwnerTable(shared_->generations.data(), shared_->generations.size());
    table_ =
        ObjectTable(shared_->objects.data(), kCapacity, HashLines(shared_->lines.data(), kLines),
                    &shared_->board, &shared_->unserved);
  }
  ObjectIndex open(std::uint64_t inode) {
    Acquisition how;
    return table_.acquire(file_key(1, inode, 7), StoreStamp{100, 5, 6, table_.reclaims()},
                          owners_.current(kSurvivor), owners_, &how);
  }
  // True when the process was killed at that step.
  bool dies_in_reclaim(ObjectIndex index, unsigned step) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)table_.reclaim(index, owners_.current(kVictim), owners_, Death(step));
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    owners_.advance(kVictim);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  std::uint32_t live_records() const {
    std::uint32_t live = 0;
    for (const Object& object : shared_->objects) live += object.has(kObjectLive) ? 1 : 0;
    return live;
  }

  static constexpr std::uint16_t kSurvivor = 1;
  static constexpr std::uint16_t kVictim = 2;
  SharedTable* shared_ = nullptr;
  OwnerTable owners_;
  ObjectTable table_;
};

// A process that takes the count for 0 does not look for objects at all.
TEST_F(ObjectDeaths, AReclaimThatIsNotEndedLeavesNoCountTooLow) {
  for (const bool is_retired : {false, true}) {
    unsigned deaths = 0;
    for (unsigned step = 0;; ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + (is_retired ? ", retired" : ""));
      clear();
      const ObjectIndex gone = open(10);
      const ObjectIndex stays = open(11);
      table_.at(gone).opens.store(0);
      if (is_retired) {
        ASSERT_TRUE(table_.retire(gone, owners_.current(kSurvivor), owners_));
      }
      const bool is_killed = dies_in_reclaim(gone, step);
      EXPECT_GE(table_.live_count(), live_records());
      // Another process takes the lock over, and may reclaim what is left.
      (void)table_.reclaim(gone, owners_.current(kSurvivor), owners_);
      EXPECT_GE(table_.live_count(), live_records());
      EXPECT_EQ(table_.find(file_key(1, 11, 7)), stays);
      EXPECT_NE(open(10), ObjectIndex::kNone);
      EXPECT_GE(table_.live_count(), 2U);
      if (!is_killed) break;
      ++deaths;
    }
    EXPECT_EQ(deaths, 5U);
  }
}

}  // namespace
}  // namespace cairn
