// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/owned_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

namespace cairn {
namespace {

struct Shared {
  std::array<std::atomic<std::uint32_t>, 8> generations{};
  OwnedLock lock;
  std::uint64_t counter = 0;
  std::atomic<std::uint32_t> ready{0};
};

class OwnedLockTest : public testing::Test {
 protected:
  void SetUp() override {
    void* mapped =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    shared_ = new (mapped) Shared;
    owners_ = OwnerTable(shared_->generations.data(), 8);
  }
  void TearDown() override { munmap(shared_, sizeof(Shared)); }

  Shared* shared_ = nullptr;
  OwnerTable owners_;
};

TEST_F(OwnedLockTest, ThreadsExcludeEachOther) {
  std::vector<std::thread> threads;
  for (std::uint16_t slot = 1; slot <= 4; ++slot) {
    threads.emplace_back([&, slot] {
      const Owner self = owners_.current(slot);
      for (int i = 0; i < 20'000; ++i) {
        OwnedGuard guard(shared_->lock, self, owners_);
        ++shared_->counter;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared_->counter, 80'000u);
}

TEST_F(OwnedLockTest, ADeadHoldersLockIsTakenOver) {
  const pid_t child = fork();
  if (child == 0) {
    (void)shared_->lock.lock(owners_.current(3), owners_);
    shared_->ready = 1;
    pause();
    _exit(0);
  }
  while (shared_->ready == 0) usleep(1000);
  EXPECT_FALSE(shared_->lock.try_lock(owners_.current(1)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::thread waiter([&] {
    OwnedGuard guard(shared_->lock, owners_.current(1), owners_);
    EXPECT_TRUE(guard.was_stolen());
  });
  owners_.advance(3);  // what the service does when it sees the death
  waiter.join();
  EXPECT_FALSE(shared_->lock.holder());
}

TEST(OwnerTest, AGenerationEndsALife) {
  std::array<std::atomic<std::uint32_t>, 4> generations{};
  OwnerTable owners(generations.data(), 4);
  const Owner first = owners.current(2);
  EXPECT_TRUE(owners.is_alive(first));
  owners.advance(2);
  EXPECT_FALSE(owners.is_alive(first));
  EXPECT_TRUE(owners.is_alive(owners.current(2)));
  EXPECT_FALSE(owners.is_alive(Owner()));
  EXPECT_FALSE(owners.is_alive(Owner(9, 0))) << "a slot past the table is nobody";
}

class EverybodyIsGone final : public OwnerWatch {
 public:
  bool is_gone(Owner) const override { return true; }
};

TEST(OwnerTest, ADeadOwnerIsFollowedOrNot) {
  std::array<std::atomic<std::uint32_t>, 4> generations{};
  OwnerTable owners(generations.data(), 4);
  const Owner first = owners.current(1);
  const Owner second = owners.succeed(1);
  EXPECT_FALSE(owners.is_alive(first));
  EXPECT_TRUE(owners.is_alive(second));
  EXPECT_TRUE(owners.has_owner(1));
  owners.look_after_last(1);
  EXPECT_TRUE(owners.has_owner(1)) << "nobody watches";
  const EverybodyIsGone watch;
  owners.watch_with(&watch);
  for (int waiter = 0; waiter < 3; ++waiter) {
    owners.look_after_last(1);
    owners.look_after(second);
    EXPECT_FALSE(owners.has_owner(1)) << "once dead, dead for all";
    EXPECT_FALSE(owners.is_alive(second));
  }
  const Owner third = owners.succeed(1);
  EXPECT_TRUE(owners.is_alive(third));
  EXPECT_TRUE(owners.has_owner(1));
  EXPECT_NE(third, first);
}

}  // namespace
}  // namespace cairn
