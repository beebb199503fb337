// SPDX-License-Identifier: Apache-2.0
// OwnedLock in every order of its steps, with deaths in between: one holder at a time, the lock
// of the dead is taken over, and no wait is for ever.
#include "interleavings/testing/expect_all.h"
#include "memory/arena/owned_lock.h"

namespace cairn::stepping {
namespace {

// Operations: `l` locks, works and unlocks; `t` does if the lock is free; `s` frees it as the
// service's sweep does.
class LockScene final : public Scene {
 public:
  std::span<std::byte> memory() override { return bytes_of(shared_); }
  void act(unsigned actor, char operation) override {
    switch (operation) {
      case 'l': {
        const bool is_stolen =
            shared_.lock.lock(self(actor), owners()) == OwnedLock::Acquired::kStolen;
        const unsigned before = shared_.inside.load();
        require(before == 0 || !owners().is_alive(owner_of(before)), "two hold the lock");
        require(before == 0 || is_stolen || shared_.swept.peek(), "a dead holder is not told of");
        return work(actor);
      }
      case 't':
        return shared_.lock.try_lock(self(actor)) ? work(actor) : void();
      default: {
        const Owner holder = shared_.lock.holder();
        if (!holder || owners().is_alive(holder)) return;
        shared_.swept.poke(true);
        (void)shared_.lock.release_if_held_by(holder);
      }
    }
  }
  void bury(unsigned actor) override { owners().advance(owner_slot(actor)); }
  void settle() override {
    const Owner last(7, 0);
    (void)shared_.lock.lock(last, owners());
    shared_.lock.unlock(last);
    require(!shared_.lock.holder(), "the lock is not free in the end");
    // One who died may have counted and not have noted it.
    const unsigned counted = shared_.counter.peek();
    require(counted == shared_.noted || counted == shared_.noted + 1,
            "a change under the lock is lost");
  }

 private:
  struct Shared {
    Generations generations;
    OwnedLock lock;
    std::atomic<std::uint32_t> inside;
    std::atomic<std::uint32_t> counter;
    std::atomic<bool> swept;
    std::uint32_t noted = 0;
  };
  OwnerTable owners() { return shared_.generations.table(); }
  static Owner self(unsigned actor) { return Owner(owner_slot(actor), 0); }
  static Owner owner_of(unsigned inside) { return Owner(static_cast<std::uint16_t>(inside), 0); }

  void work(unsigned actor) {
    shared_.inside.store(owner_slot(actor));
    const std::uint32_t seen = shared_.counter.load();
    shared_.counter.store(seen + 1);
    ++shared_.noted;
    require(shared_.inside.load() == owner_slot(actor), "another one is inside");
    shared_.inside.store(0);
    shared_.lock.unlock(self(actor));
  }

  Shared shared_;
};

TEST(LockOrders, TwoActorsOfWhomOneMayDie) {
  expect_all<LockScene>(all_programs("lts", 3), {.deaths_max = 1});
}

TEST(LockOrders, TwoActorsWhoMayBothDie) {
  expect_all<LockScene>({"lls", "tll", "lsl"}, {.deaths_max = 2});
}

TEST(LockOrders, ThreeActors) {
  expect_each<LockScene>({{"ll", "l", "l"}, {"ll", "t", "s"}}, {.deaths_max = 1});
}

TEST(LockOrders, MoreActorsByChance) { expect_some<LockScene>({"lllts", "llts", "ls"}, 8, 20'000); }

}  // namespace
}  // namespace cairn::stepping
