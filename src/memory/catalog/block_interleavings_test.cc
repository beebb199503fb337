// SPDX-License-Identifier: Apache-2.0
// One block, and those who find, move, drop, write and flush it, in every order of the steps that
// they show each other. "Not there" is only ever said of a block that is not there, and a flush
// that says clean has left nothing dirty that it was to store.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "memory/catalog/flush_lookup.h"
#include "memory/catalog/testing/interleaver.h"
#include "memory/catalog/testing/small_catalog.h"

namespace cairn {
namespace {

constexpr auto kObject = ObjectIndex{5};
constexpr auto kNumber = BlockNumber{7};
constexpr std::uint16_t kBlockPages = 3;

class Pause {
 public:
  explicit Pause(Interleaver& interleaver) : interleaver_(&interleaver) {}
  void at_step() const { interleaver_->give_way(); }
  void before_lock(const BlockDescriptor& block) const {
    interleaver_->give_way([&block] { return !BlockDescriptor::is_locked(block.word()); });
  }
  void until_unclaimed(const BlockDescriptor& block, const OwnerTable& owners) const {
    interleaver_->give_way([&block, &owners] { return !block.is_claimed(owners); });
  }

 private:
  Interleaver* interleaver_;
};

// The block and its tables, and what is true of it after each step.
class World {
 public:
  World(Interleaver& interleaver, bool is_dirty) : pause_(interleaver) {
    // Another block stands where ours would stand first, so that it takes a search to find that.
    (void)tables_.place(kOther, kObject, BlockNumber{raw(kNumber) + 4}, kBlockPages);
    EXPECT_EQ(directory().guess(kObject, kNumber), BucketIndex{kOther});
    LockedBlock block = tables_.place(kFirst, kObject, kNumber, kBlockPages);
    if (is_dirty) {
      WritableBlock(block, kBlockPages).commit();
      bytes_[kFirst] = ++written_;
    }
  }

  // True of the tables, whatever a search makes of them.
  std::uint32_t place_now() const { return tables_.place_of(kObject, kNumber); }
  bool is_there() const { return place_now() != 0; }
  bool is_dirty() const { return is_there() && tables_.block(place_now()).dirty_pages() != 0; }
  bool is_stored_if_clean() const {
    return !is_there() || is_dirty() || bytes_[place_now()] == stored_;
  }
  void look() {
    if (!is_there()) ++absences_;
  }
  bool was_absent_without_leave() const { return absences_ != 0 && !may_leave_; }
  unsigned wrong_answers() const { return wrong_; }
  const SmallCatalog& tables() const { return tables_; }

  void find() {
    const bool was_there = is_there();
    const unsigned before = absences_;
    const BucketIndex found = directory().find(kObject, kNumber, pause_);
    const bool was_always_there = was_there && absences_ == before && is_there();
    if (found == BucketIndex::kNone && was_always_there) ++wrong_;
  }
  // To the next bucket and the next, as the organizer or growth does it.
  void move(unsigned times) {
    for (unsigned time = 0; time < times; ++time) {
      LockedBlock block = lock_wherever(2);
      if (!block) return;
      UnclaimedBlock old(block);
      if (!old) return;
      const std::uint32_t from = raw(old.bucket());
      const std::uint32_t to = from == kLast ? kFirst : from + 1;
      pause_.before_lock(tables_.block(to));
      FreshBlock fresh = tables_.take(2, to);
      bytes_[to] = bytes_[from];
      Relocated moved = std::move(old).relocate(std::move(fresh), PlacementReason::kGrown, pause_);
      moved.block.unlock();
      pause_.at_step();
      moved.emptied.unlock();
      pause_.at_step();
    }
  }
  // If it is clean, as the organizer does; a truncation drops it in any case.
  void drop(bool though_dirty) {
    may_leave_ = true;
    LockedBlock block = lock_wherever(3);
    if (!block || (!though_dirty && block.descriptor().dirty_pages() != 0)) return;
    UnclaimedBlock unclaimed(block);
    if (!unclaimed) return;
    FreshBlock emptied = std::move(unclaimed).vacate(pause_);
    emptied.unlock();
  }
  void write() {
    LockedBlock block = lock_wherever(6);
    if (!block) return;
    {
      WritableBlock writable(block, kBlockPages);
      pause_.at_step();
      bytes_[raw(block.bucket())] = written_ + 1;
      pause_.at_step();
      writable.commit();
      pause_.at_step();
    }
    block.unlock();
    ++written_;
  }
  // As fsync: what was written before it began is in the store when it has ended.
  void flush(std::uint16_t slot) {
    const unsigned promised = written_;
    for (;;) {
      LockedBlock block = lock_unless_clean(tables_.worker(slot), kObject, kNumber, pause_);
      if (!block || block.descriptor().dirty_pages() == 0) break;
      const BlockDescriptor& descriptor = block.descriptor();
      if (block.is_claimed()) {
        block.unlock();
        pause_.until_unclaimed(descriptor, tables_.catalog().owners());
        continue;
      }
      ClaimedBlock claim = std::move(block).begin_flush(descriptor.dirty_pages());
      pause_.at_step();
      const unsigned stored = bytes_[raw(claim.bucket())];
      pause_.at_step();
      if (stored > stored_) stored_ = stored;
      (void)std::move(claim).end_flush(true, pause_);
      break;
    }
    if (stored_ < promised && is_there()) ++wrong_;
  }

 private:
  static constexpr std::uint32_t kFirst = 1;
  static constexpr std::uint32_t kLast = 3;
  static constexpr std::uint32_t kOther = 4;  // the bucket of another block

  BlockDirectory& directory() const { return tables_.catalog().directory(); }
  LockedBlock lock_wherever(std::uint16_t slot) {
    LockedBlock block;
    for (;;) {
      const BucketIndex bucket = directory().find(kObject, kNumber, pause_);
      if (bucket == BucketIndex::kNone) return block;
      pause_.before_lock(tables_.block(raw(bucket)));
      if (block.lock_place(tables_.worker(slot), bucket, kObject, kNumber)) return block;
    }
  }

  Pause pause_;
  SmallCatalog tables_;
  std::array<unsigned, SmallCatalog::kBuckets> bytes_{};  // which write a bucket has seen
  unsigned written_ = 0;
  unsigned stored_ = 0;
  unsigned absences_ = 0;
  unsigned wrong_ = 0;
  bool may_leave_ = false;
};

class BlockInterleavings : public testing::Test {
 protected:
  using Tasks = std::vector<Interleaver::Task>;

  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not follow swapcontext()";
#endif
  }

  // Runs the tasks that make(world) returns in every order, and what holds whatever they are.
  template <typename Make>
  std::size_t run(bool is_dirty, unsigned switches_max, Make&& make) {
    return interleaver_.run_all(
        [&] {
          interleaver_.watch({});
          world_ = std::make_unique<World>(interleaver_, is_dirty);
          interleaver_.watch([this] { world_->look(); });
          return make(*world_);
        },
        [&] { return is_right(); }, switches_max);
  }

  Interleaver interleaver_;
  std::unique_ptr<World> world_;

 private:
  bool is_right() {
    const auto order = [this] { return testing::PrintToString(interleaver_.order()); };
    EXPECT_TRUE(interleaver_.are_all_done()) << order();
    EXPECT_EQ(world_->wrong_answers(), 0u) << order();
    EXPECT_FALSE(world_->was_absent_without_leave()) << order();
    EXPECT_TRUE(world_->is_stored_if_clean()) << order();
    // The count agrees with the block.
    const unsigned dirty = world_->is_dirty() ? 1 : 0;
    EXPECT_EQ(world_->tables().object(kObject).dirty_blocks.load(), dirty) << order();
    EXPECT_EQ(world_->tables().dirty_bytes(), dirty * kBlockBytes) << order();
    return !HasFailure();
  }
};

TEST_F(BlockInterleavings, AFinderMeetsAMover) {
  const std::size_t orders = run(false, Interleaver::kUnbounded, [](World& world) {
    return Tasks{[&world] { world.find(); }, [&world] { world.move(1); }};
  });
  EXPECT_GT(orders, 500u);
  EXPECT_TRUE(world_->is_there());
}

TEST_F(BlockInterleavings, AFinderMeetsAMoverAgainAndAgain) {
  const std::size_t orders = run(false, 7, [](World& world) {
    return Tasks{[&world] { world.find(); }, [&world] { world.move(3); }};
  });
  EXPECT_GT(orders, 1000u);
}

TEST_F(BlockInterleavings, AFinderMeetsAMoverAndADropper) {
  run(false, 3, [](World& world) {
    return Tasks{[&world] { world.find(); }, [&world] { world.move(1); },
                 [&world] { world.drop(false); }};
  });
}

TEST_F(BlockInterleavings, AFlusherMeetsAMover) {
  const std::size_t orders = run(true, 4, [](World& world) {
    return Tasks{[&world] { world.flush(4); }, [&world] { world.move(2); }};
  });
  EXPECT_GT(orders, 1000u);
}

TEST_F(BlockInterleavings, AFlusherMeetsAMoverAndAWriter) {
  run(true, 3, [](World& world) {
    return Tasks{[&world] { world.flush(4); }, [&world] { world.move(1); },
                 [&world] { world.write(); }};
  });
}

TEST_F(BlockInterleavings, TwoFlushersMeetAMover) {
  run(true, 3, [](World& world) {
    return Tasks{[&world] { world.flush(4); }, [&world] { world.flush(5); },
                 [&world] { world.move(1); }};
  });
}

TEST_F(BlockInterleavings, AFlusherMeetsATruncation) {
  run(true, 4, [](World& world) {
    return Tasks{[&world] { world.flush(4); }, [&world] { world.drop(true); },
                 [&world] { world.find(); }};
  });
}

TEST_F(BlockInterleavings, AllOfThemMeet) {
  run(true, 2, [](World& world) {
    return Tasks{[&world] { world.find(); }, [&world] { world.move(1); },
                 [&world] { world.drop(false); }, [&world] { world.flush(4); }};
  });
}

}  // namespace
}  // namespace cairn
