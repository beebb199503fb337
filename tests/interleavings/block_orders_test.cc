// SPDX-License-Identifier: Apache-2.0
// One block, and threads that read, write, flush, move, evict and discard it, in every order of
// their steps, with deaths in between. A read sees the last write, a flush stores it, no rubbish is
// ever valid, and no bucket is lost.
#include "interleavings/testing/expect_all.h"
#include "interleavings/testing/sweep.h"
#include "memory/catalog/flush_lookup.h"
#include "memory/pool/lease.h"

namespace cairn::stepping {
namespace {

constexpr auto kObject = ObjectIndex{1};
constexpr auto kNumber = BlockNumber{3};
constexpr std::uint16_t kPage = 1;

// Operations: `r` reads and `w` writes the block, which is placed if it is nowhere; `h` reads it as
// a hit, without a lock, and `p` while it is pinned; `f` flushes it; `m` moves it under its lock
// and `o` as the organizer does, by a claim; `e` evicts it if it is clean, `d` discards it; `x` is
// the service's sweep.
//
// The model of the block's one page: each write has a number of its own.
class BlockScene final : public Scene {
 public:
  BlockScene() {
    pool_.format();
    shared_.objects[raw(kObject)].flags.poke(kObjectLive);
  }
  std::span<std::byte> memory() override { return bytes_of(shared_); }
  std::span<const std::byte> own(unsigned actor) override {
    return bytes_of(shared_.leases[actor]);
  }
  bool is_aside(const void* address) const override;
  bool is_held(unsigned actor, const void* address) const override;
  void act(unsigned actor, char operation) override;
  void bury(unsigned actor) override {
    shared_.somebody_died = true;
    owners().advance(owner_slot(actor));
  }
  void check() override;
  void settle() override;

 private:
  static constexpr std::uint32_t kSlabs = 6;
  static constexpr unsigned kThreads = 3;
  static constexpr std::uint32_t kRubbish = 999;  // in a bucket that nobody has filled
  // What was promised before something began must be seen by it, if nothing was discarded since.
  struct Before {
    std::uint32_t promised = 0;
    std::uint32_t discards = 0;
  };
  struct Shared {
    Generations generations;
    std::array<Before, kThreads> begun{};
    std::array<Object, 2> objects{};
    HashLine line{};
    std::array<BlockDescriptor, kSlabs + 1> descriptors{};
    std::atomic<std::uint64_t> dirty_map;
    std::array<std::atomic<std::uint64_t>, kSlabs> slabs{};
    std::array<std::atomic<std::uint64_t>, kSizeClasses> hints{};
    std::array<Lease, kThreads> leases{};
    std::array<std::atomic<std::uint32_t>, kSlabs + 1> bytes{};
    std::atomic<std::uint32_t> store;
    // Both begin with their lock.
    std::uint64_t words_of(std::size_t bucket) const {
      return reinterpret_cast<const std::atomic<std::uint64_t>*>(&descriptors[bucket])->peek();
    }
    Owner line_holder() const {
      return Owner::from_bits(reinterpret_cast<const std::atomic<std::uint32_t>*>(&line)->peek());
    }
    std::uint32_t written = 0;   // the last write's number
    std::uint32_t promised = 0;  // the last that has ended: a later read sees it or a younger one
    std::uint32_t discards = 0;
    bool somebody_died = false;
    // From here on: counts and hints, which steer nobody.
    std::atomic<std::uint32_t> free_slabs;
    ObjectBoard object_board{};
    FlusherBoard flusher_board{};
    TierAccounts accounts{};
  };

  const OwnerTable& owners() const { return catalog_.owners(); }
  OwnerTable& owners() { return catalog_.owners(); }
  BlockWorker worker(unsigned actor) const { return {&catalog_, Owner(owner_slot(actor), 0)}; }
  std::atomic<std::uint32_t>& bytes(BucketIndex bucket) { return shared_.bytes[raw(bucket)]; }

  FreshBlock take(unsigned actor) {
    Lease::Fresh fresh;
    FreshBlock block =
        shared_.leases[actor].take(pool_, {SizeClass::k64KiB}, worker(actor), &fresh);
    if (block) bytes(block.bucket()).poke(kRubbish);
    forget_all_but({__LINE__, raw(block.bucket())});
    return block;
  }
  void release(unsigned actor, FreshBlock block) {
    shared_.leases[actor].release(pool_, std::move(block), worker(actor).self);
  }
  LockedBlock lock(unsigned actor) {
    LockedBlock block;
    for (bool is_there = false; !is_there;) {
      const BucketIndex bucket = catalog_.directory().find(kObject, kNumber);
      forget_all_but({__LINE__, raw(bucket)});
      if (bucket == BucketIndex::kNone) break;
      is_there = block.lock_place(worker(actor), bucket, kObject, kNumber);
      forget_all_but({__LINE__, raw(bucket), is_there});
    }
    return block;
  }
  LockedBlock lock_or_place(unsigned actor) {
    for (;;) {
      LockedBlock block = lock(actor);
      if (block) return block;
      FreshBlock fresh = take(actor);
      if (!fresh) return block;
      const BucketIndex place = fresh.publish(kObject, kNumber, PlacementReason::kRead, &block);
      forget_all_but({__LINE__, raw(place), block ? 0U : raw(fresh.bucket())});
      if (block) return block;
      release(actor, std::move(fresh));
      if (place == BucketIndex::kNone) return block;
    }
  }

  void expect_seen(std::uint32_t value, const Before& before, const char* what) {
    require(value <= shared_.written, "bytes that nobody has written");
    require(value >= before.promised || shared_.discards != before.discards, what);
  }

  void operate(unsigned actor, char operation);
  void read(unsigned actor);
  void read_hit(const Before& began);
  void look_while_pinned(unsigned actor);
  void write(unsigned actor);
  void flush(const BlockWorker& by, const Before& began);
  void move(unsigned actor, bool by_claim);
  void leave(unsigned actor, bool though_dirty);
  void look_at(std::uint32_t bucket);
  std::uint32_t place() const {
    for (const auto& slot : shared_.line.slots) {
      if (slot.peek() != 0) return static_cast<std::uint32_t>(slot.peek());
    }
    return 0;
  }
  void expect_counts();

  Shared shared_;
  UnservedBoard unserved_{};
  HashLine object_line_{};
  BlockCatalog catalog_{
      shared_.generations.table(),
      ObjectTable(shared_.objects.data(), 2, HashLines(&object_line_, 1), &shared_.object_board,
                  &unserved_),
      BlockDirectory(HashLines(&shared_.line, 1), shared_.descriptors.data(), kSlabs + 1),
      DirtyBlocks(&shared_.dirty_map, kSlabs + 1, &shared_.flusher_board)};
  BucketPool pool_{{shared_.slabs.data(),
                    &shared_.hints[0],
                    {&shared_.hints[1], &shared_.hints[2]},
                    &shared_.free_slabs,
                    &shared_.accounts},
                   {kSlabs, 1, 1}};
};

bool BlockScene::is_aside(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto offset_in = [at](const auto& array) {
    return static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(&array));
  };
  if (at >= reinterpret_cast<const std::byte*>(&shared_.free_slabs)) return true;
  const std::size_t in_object = offset_in(shared_.objects);
  if (in_object < sizeof shared_.objects) return in_object % sizeof(Object) >= object_layout::kLine;
  // The hints of a descriptor: why and when it was placed and used.
  const std::size_t in_blocks = offset_in(shared_.descriptors);
  const std::size_t in_block = in_blocks % sizeof(BlockDescriptor);
  return in_blocks < sizeof shared_.descriptors &&
         (in_block == 22 || in_block == 23 || in_block >= 28);
}

// Under a bucket's lock lie its descriptor, but for the claim, and its bytes; under the line's
// lock, the line.
bool BlockScene::is_held(unsigned actor, const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto offset_in = [at](const auto& array) {
    return static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(&array));
  };
  const auto holds = [this, actor](std::size_t bucket) {
    return BlockDescriptor::owner_in(shared_.words_of(bucket)) == Owner(owner_slot(actor), 0);
  };
  const std::size_t in_blocks = offset_in(shared_.descriptors);
  constexpr std::size_t kClaim = 24;
  if (in_blocks < sizeof shared_.descriptors)
    return in_blocks % sizeof(BlockDescriptor) != kClaim &&
           holds(in_blocks / sizeof(BlockDescriptor));
  const std::size_t in_bytes = offset_in(shared_.bytes);
  if (in_bytes < sizeof shared_.bytes) return holds(in_bytes / sizeof shared_.bytes[0]);
  const std::size_t in_line = offset_in(shared_.line);
  return in_line < sizeof shared_.line && shared_.line_holder() == Owner(owner_slot(actor), 0);
}

void BlockScene::act(unsigned actor, char operation) {
  shared_.begun[actor] = {shared_.promised, shared_.discards};
  operate(actor, operation);
  shared_.begun[actor] = {};
}

void BlockScene::operate(unsigned actor, char operation) {
  switch (operation) {
    case 'r':
      return read(actor);
    case 'h':
      return read_hit(shared_.begun[actor]);
    case 'w':
      return write(actor);
    case 'f':
      return flush(worker(actor), shared_.begun[actor]);
    case 'm':
      return move(actor, false);
    case 'o':
      return move(actor, true);
    case 'p':
      return look_while_pinned(actor);
    case 'e':
      return leave(actor, false);
    case 'd':
      return leave(actor, true);
    default:
      return sweep(pool_, worker(actor), [](BucketIndex) {});
  }
}

void BlockScene::read(unsigned actor) {
  LockedBlock block = lock_or_place(actor);
  if (!block) return;
  if ((block.descriptor().valid_pages() & kPage) == 0) {
    bytes(block.bucket()).store(shared_.store.load());
    block.fill(kPage);
  }
  expect_seen(bytes(block.bucket()).load(), shared_.begun[actor], "a read sees old bytes");
}

// As memory/buffer/read_hit.h does it.
void BlockScene::read_hit(const Before& began) {
  const BucketIndex bucket = catalog_.directory().guess(kObject, kNumber);
  if (bucket == BucketIndex::kNone) return;
  const BlockDescriptor& block = catalog_.block(bucket);
  const std::uint64_t word = block.word(std::memory_order_acquire);
  const bool may_be = BlockDescriptor::is_at_rest(word) && block.holds(kObject, kNumber) &&
                      (block.valid_pages() & kPage) != 0;
  if (!may_be) return;
  const std::uint32_t value = bytes(bucket).load();
  if (block.word() == word) expect_seen(value, began, "a hit sees old bytes");
}

void BlockScene::look_while_pinned(unsigned actor) {
  LockedBlock block = lock(actor);
  if (!block || (block.descriptor().valid_pages() & kPage) == 0) return;
  PinnedBlock pinned = std::move(block).pin();
  forget_all_but({__LINE__, raw(pinned.bucket())});
  expect_seen(bytes(pinned.bucket()).load(), shared_.begun[actor], "a pinned block has old bytes");
  require(place() == raw(pinned.bucket()), "a pinned block has moved");
}

void BlockScene::write(unsigned actor) {
  LockedBlock block = lock_or_place(actor);
  if (!block) return;
  WritableBlock writable(block, kPage);
  const std::uint32_t value = ++shared_.written;
  bytes(block.bucket()).store(value);
  writable.commit();
  shared_.promised = value;
}

// As fsync: what was promised before is in the store afterwards.
void BlockScene::flush(const BlockWorker& by, const Before& began) {
  for (;;) {
    LockedBlock block = lock_unless_clean(by, kObject, kNumber);
    forget_all_but({__LINE__, block ? raw(block.bucket()) : 0U});
    if (!block || block.descriptor().dirty_pages() == 0) break;
    if (block.is_claimed()) {
      const BlockDescriptor& descriptor = block.descriptor();
      block.unlock();
      descriptor.wait_for_claimant(owners());
      continue;
    }
    ClaimedBlock claim = std::move(block).begin_flush(block.descriptor().dirty_pages());
    const std::uint32_t value = bytes(claim.bucket()).load();
    forget_all_but({__LINE__, raw(claim.bucket()), claim.sequence(), claim.pages(), value});
    require(value >= shared_.store.peek(), "the store is given older bytes");
    shared_.store.store(value);
    const bool is_done = std::move(claim).end_flush(true);
    forget_all_but({__LINE__, is_done});
    if (is_done) break;
  }
  expect_seen(shared_.store.load(), began, "a flush has left something");
}

void BlockScene::move(unsigned actor, bool by_claim) {
  LockedBlock block = lock(actor);
  if (!block || block.is_held() || !block.descriptor().has_bytes()) return;
  FreshBlock fresh = take(actor);
  if (!fresh) return;
  forget_all_but({__LINE__, raw(fresh.bucket()), raw(block.bucket())});
  UnclaimedBlock old;
  if (by_claim) {
    ClaimedBlock claim = std::move(block).begin_move();
    bytes(fresh.bucket()).store(bytes(claim.bucket()).load());
    old = std::move(claim).end_move();
    forget_all_but({__LINE__, raw(fresh.bucket()), old ? raw(old.bucket()) : 0U});
    // Changed meanwhile, or somebody has pinned it.
    if (!old) return release(actor, std::move(fresh));
  } else {
    bytes(fresh.bucket()).store(bytes(block.bucket()).load());
    old = UnclaimedBlock(block);
  }
  Relocated moved = std::move(old).relocate(std::move(fresh), PlacementReason::kGrown);
  forget_all_but({__LINE__, raw(moved.block.bucket()), raw(moved.emptied.bucket())});
  moved.block.unlock();
  release(actor, std::move(moved.emptied));
}

void BlockScene::leave(unsigned actor, bool though_dirty) {
  LockedBlock block = lock(actor);
  if (!block || (!though_dirty && block.descriptor().dirty_pages() != 0)) return;
  UnclaimedBlock unclaimed(block);
  if (!unclaimed) return;
  if (though_dirty) {
    ++shared_.discards;
    shared_.promised = 0;
  }
  FreshBlock emptied = std::move(unclaimed).vacate();
  forget_all_but({__LINE__, raw(emptied.bucket())});
  release(actor, std::move(emptied));
}

// An unlocked bucket that is the block's place.
void BlockScene::look_at(std::uint32_t bucket) {
  const BlockDescriptor& block = shared_.descriptors[bucket];
  const std::uint16_t dirty = block.dirty_pages();
  require(agrees(block.state(), block.valid_pages(), dirty), "state and pages disagree");
  require(block.state() != BlockState::kFree, "a free bucket is a place");
  // What a dead flusher had begun is dirty under another name.
  const bool is_made = static_cast<bool>(block.claimant()) || shared_.somebody_died;
  require(block.state() != BlockState::kFlushing || is_made, "a flush that nobody makes");
  require(dirty == 0 || (shared_.dirty_map.peek() >> bucket & 1) != 0, "dirty and not marked");
  if ((block.valid_pages() & kPage) == 0) return;
  const std::uint32_t value = shared_.bytes[bucket].peek();
  require(value <= shared_.written, "a valid page has bytes that nobody wrote");
  require(value >= shared_.promised, "a write is lost");
  require(dirty != 0 || value == shared_.store.peek() || shared_.discards != 0,
          "clean, but not stored");
}

void BlockScene::check() {
  unsigned slots = 0;
  for (const auto& slot : shared_.line.slots) slots += slot.peek() != 0 ? 1 : 0;
  require(slots <= 1, "a block has two places");
  const std::uint32_t bucket = place();
  if (bucket != 0 && !BlockDescriptor::is_locked(shared_.descriptors[bucket].word()))
    look_at(bucket);
  if (bucket == 0) require(shared_.store.peek() >= shared_.promised, "a block is gone, unstored");
}

// As the service does after deaths, and a last flush.
void BlockScene::settle() {
  const BlockWorker service{&catalog_, Owner(1, 0)};
  const Owner holder = shared_.line.lock.holder();
  if (holder) {
    require(!owners().is_alive(holder), "somebody has left a lock");
    (void)shared_.line.lock.release_if_held_by(holder);
  }
  // Which would find what is lost without a death, too.
  if (shared_.somebody_died) sweep(pool_, service, [](BucketIndex) {});
  for (std::uint32_t bucket = 1; bucket <= kSlabs; ++bucket)
    (void)shared_.descriptors[bucket].release_dead_claim(owners());
  for (unsigned actor = 0; actor < kThreads; ++actor) {
    if (owners().is_alive(worker(actor).self)) shared_.leases[actor].drop(pool_);
  }
  // In the pool the next who takes it takes the lock over.
  for (std::uint32_t bucket = 1; bucket <= kSlabs; ++bucket) {
    const Owner owner = BlockDescriptor::owner_in(shared_.descriptors[bucket].word());
    const bool is_in_pool = !pool_.is_taken(BucketIndex{bucket}) && !owners().is_alive(owner);
    require(!owner || is_in_pool, "a bucket is left locked");
  }
  check();
  expect_counts();
  flush(service, {shared_.promised, shared_.discards});
  require(shared_.store.peek() >= shared_.promised, "a write is never stored");
  if (LockedBlock block = lock(0)) pool_.release(UnclaimedBlock(block).vacate());
  require(pool_.count_free_slabs() == kSlabs, "a bucket is lost");
}

void BlockScene::expect_counts() {
  const Object& object = shared_.objects[raw(kObject)];
  const std::uint32_t blocks = place() != 0 ? 1 : 0;
  const std::uint32_t dirty = shared_.descriptors[place()].dirty_pages() != 0 ? 1 : 0;
  require(pool_.count_free_slabs() == kSlabs - blocks, "a bucket is in use without a block");
  require(object.blocks >= blocks && object.dirty_blocks >= dirty, "a count is too low");
  if (shared_.somebody_died) return;
  require(object.blocks == blocks && object.dirty_blocks == dirty, "a count is off");
  require(shared_.flusher_board.dirty_bytes == dirty * kBlockBytes, "dirty bytes are off");
}

constexpr Explorer::Options kOneDies{.deaths_max = 1};

TEST(BlockOrders, WritersWhoFlush) { expect_each<BlockScene>({{"wfw", "fwf"}}, kOneDies); }

TEST(BlockOrders, AWriterWhoEvictsAndReaders) {
  expect_each<BlockScene>({{"wfe", "rhr"}, {"wmr", "hwh"}}, kOneDies);
}

TEST(BlockOrders, MoversMeetAFlusher) {
  expect_each<BlockScene>({{"wo", "fm"}, {"wmf", "wo"}}, kOneDies);
}

// A block that moves twice meets a flusher who looks for it.
TEST(BlockOrders, AFlusherMeetsAMoverWhoComesBack) {
  expect_each<BlockScene>({{"wf", "mm"}}, kOneDies);
}

// A pin names no owner, so nobody dies.
TEST(BlockOrders, APinnedBlockStays) {
  expect_each<BlockScene>({{"wpw", "mo"}, {"wpp", "fed"}}, {.deaths_max = 0});
}

TEST(BlockOrders, ADiscardMeetsAFlusher) {
  expect_each<BlockScene>({{"wd", "wf"}, {"wdr", "fr"}}, kOneDies);
}

TEST(BlockOrders, TheSweepMeetsThemAll) {
  expect_each<BlockScene>({{"wm", "xx"}, {"wo", "x"}}, kOneDies);
}

TEST(BlockOrders, MoreByChance) {
  expect_some<BlockScene>({"rwhfmoed", "rwhfmoed", "wfwfmex"}, 8, 20'000);
}

}  // namespace
}  // namespace cairn::stepping
