// SPDX-License-Identifier: Apache-2.0
// The buckets of one tier: slabs of one block each, given out whole or carved into smaller size
// classes.
//
// A slab is described by one word, and every change of it is one compare-and-swap:
//
//   | owner : 24 | spare : 4 | class : 2 | state : 2 | spare : 10 | account : 6 | free buckets : 16
//   |
//
// The account pays for the slab since it was last taken free (memory/pool/capacity_accounts.h).
//
//   state     meaning                              who moves it where
//   free      nobody's, all buckets free           client, service: lease() -> leased
//   leased    `owner` takes buckets from it        owner: give_back() -> shared or free; service
//                                                  after its death
//   shared    buckets are in use, some may be free lease() or keep() -> leased; last release()
//                                                  -> free
//
// Invariants
//  1. A bucket whose free bit is clear is either published in the directory or its descriptor is
//     locked by a thread that is about to publish or free it. So a death loses nothing: the sweep
//     finds the buckets that the dead owner locked by its name.
//  2. The bitmaps of hints are only hints; the slab word decides. A stale hint costs a look.
//
// Thread safety: lock-free. Ownership: the words live in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "memory/arena/owner.h"
#include "memory/catalog/block_life.h"
#include "memory/pool/capacity_accounts.h"

namespace cairn {

// How many slabs of each tier are free: exact up to changes in flight. Taking a slab out of a pool
// and giving it back changes the count; clients, organizer and placement read it.
struct alignas(64) PoolBoard {
  std::atomic<std::uint32_t> free_slabs[kTiersMax];
};
static_assert(sizeof(PoolBoard) == 64, "one line");

struct SlabIndex {
  std::uint32_t value;
};

class BucketPool {
 public:
  // The shared words of a pool; all zero at first use but for `free_hint`, which create() fills.
  struct Words {
    std::atomic<std::uint64_t>* slabs;
    std::atomic<std::uint64_t>* free_hint;  // one bit per slab
    std::atomic<std::uint64_t>* partial_hint[kSizeClasses - 1];
    std::atomic<std::uint32_t>* free_slabs;  // the tier's of PoolBoard
    TierAccounts* accounts;
  };
  // `descriptors_per_slab` is kPagesPerBlock where size classes are on, else 1 (file tiers).
  struct Shape {
    std::uint32_t slab_count = 0;
    std::uint32_t descriptors_per_slab = kPagesPerBlock;
    std::uint32_t first_bucket = 1;  // index of the pool's first descriptor
  };

  BucketPool() = default;
  BucketPool(Words words, Shape shape) : words_(words), shape_(shape) {}
  // Marks every slab free. Only by the node service, before anyone attaches.
  void format();

  // Takes a slab of `size_class` for `self`, starting the search at `*cursor`. False when none is
  // free for the account.
  bool lease(SizeClass size_class, Owner self, std::uint32_t* cursor, SlabIndex* slab,
             AccountId account = AccountId::kNobody);
  // The same for several slabs of the largest class at once, lowest first; returns how many of
  // `slabs` were filled. One look at the hints and one change of the count serve all of them.
  // `after` is a slab that the caller leased before: it goes on behind it if it can, and else
  // begins where kSlabsTogether slabs are free.
  unsigned lease_whole(Owner self, std::span<std::uint32_t> slabs,
                       AccountId account = AccountId::kNobody, std::uint32_t after = kNoSlab);
  static constexpr std::uint32_t kNoSlab = UINT32_MAX;
  // Slabs whose words share a cache line. Processes that each take them one by one write the same
  // lines otherwise (two of them: 116 ns a pair of take and release, against 44 alone).
  static constexpr unsigned kSlabsTogether = 8;
  // Takes a bucket from a slab that the worker leases. Empty when the slab has none left.
  FreshBlock take(SlabIndex slab, const BlockWorker& worker);
  // Takes the only bucket of a leased slab of the largest class, which is leased no more.
  FreshBlock take_whole(SlabIndex slab, const BlockWorker& worker);
  // The lessee is done with the slab.
  void give_back(SlabIndex slab, Owner self);
  // Frees the bucket.
  void release(FreshBlock block);
  // The same, but the bucket's slab is leased by `self`, who has the lock, from now on, so that no
  // line which others use is written. False when the bucket is part of a carved slab, or another
  // account's: nothing has happened then.
  bool keep(FreshBlock& block, Owner self, SlabIndex* slab, AccountId account);

  // After a death: returns what `dead` had leased. Returns the number of slabs.
  std::uint32_t reclaim_leases(Owner dead);
  // The same for every owner that is dead, in one pass; also restores hints that a death in
  // mid-step lost.
  std::uint32_t reclaim_dead_leases(const OwnerTable& owners);
  // For a successor of a dead service, which believes no word. The bucket is the place of a block,
  // which `is_place()` tells anew: the pool must not give it out. Returns whether the slab's word
  // said that it may; false, too, when the slab is carved in another way.
  template <typename IsPlace>
  bool confirm_taken(BucketIndex bucket, SizeClass size_class, IsPlace&& is_place) {
    const auto [slab, sub] = place_of(bucket);
    std::uint64_t seen = words_.slabs[slab].load(std::memory_order_acquire);
    const std::uint64_t next = word_with_taken(seen, sub, size_class);
    // A block that comes or goes meanwhile changes the word.
    return next != seen && is_place() &&
           words_.slabs[slab].compare_exchange_strong(seen, next, std::memory_order_acq_rel);
  }
  // Slabs whose words are none that a pool ever writes become what the blocks in them say:
  // `block_in(bucket)` is the size class of the block's bucket, if there is one. Returns how many
  // slabs there were.
  template <typename BlockIn>
  std::uint32_t mend_words(BlockIn&& block_in) {
    std::uint32_t mended = 0;
    for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
      std::uint64_t seen = words_.slabs[slab].load(std::memory_order_acquire);
      if (is_sound(seen)) continue;
      std::uint64_t next = 0;
      for (unsigned sub = 0; sub < shape_.descriptors_per_slab; ++sub) {
        if (const auto size_class = block_in(bucket_at(slab, sub)))
          next = word_with_taken(next, sub, *size_class);
      }
      if (!words_.slabs[slab].compare_exchange_strong(seen, next, std::memory_order_acq_rel))
        continue;
      set_hint(slab, next);
      ++mended;
    }
    return mended;
  }
  // What the slab's word says of the bucket's size.
  SizeClass class_of(BucketIndex bucket) const {
    return class_in(words_.slabs[place_of(bucket).slab].load(std::memory_order_acquire));
  }
  // True when the bucket is neither in the pool nor part of a larger one. Without its lock the
  // answer is old.
  bool is_taken(BucketIndex bucket) const;
  // Slabs in state free by looking at every one; free_slabs() may drift by a few when a death falls
  // between the change of slabs and of the count.
  std::uint32_t count_free_slabs() const;
  void correct_free_slabs(std::int32_t by) const;

  TierAccounts& accounts() const { return *words_.accounts; }
  AccountId account_of(BucketIndex bucket) const {
    return account_in(words_.slabs[place_of(bucket).slab].load(std::memory_order_relaxed));
  }
  // Slabs that are charged to `from` belong to `to` from now on.
  void transfer(AccountId from, AccountId to);
  // Slabs of each account by looking at every one, as count_free_slabs().
  void count_used_slabs(std::span<std::uint32_t, kAccountsMax> used) const;
  // Free slabs that are not held back for somebody's reservation.
  std::uint32_t common_slabs() const { return accounts().common(free_slabs()); }

  bool contains(BucketIndex bucket) const {
    return raw(bucket) - shape_.first_bucket < shape_.slab_count * shape_.descriptors_per_slab;
  }
  // True for the first bucket of a slab, the only one when the slab is not carved.
  bool is_whole_slab(BucketIndex bucket) const {
    return raw(bucket) - shape_.first_bucket < shape_.slab_count;
  }
  // Byte offset of the bucket inside the tier.
  std::uint64_t offset_of_bucket(BucketIndex bucket) const {
    if (__builtin_expect(is_whole_slab(bucket), 1))
      return std::uint64_t{raw(bucket) - shape_.first_bucket} * kBlockBytes;
    const Place place = place_of(bucket);
    return std::uint64_t{place.slab} * kBlockBytes + std::uint64_t{place.sub} * kPageBytes;
  }
  std::uint32_t slab_count() const { return shape_.slab_count; }
  std::uint32_t free_slabs() const { return words_.free_slabs->load(std::memory_order_relaxed); }
  const Shape& shape() const { return shape_; }

  // Calls visit(BucketIndex) for every bucket of every slab that is not free, in use or not.
  template <typename Visit>
  void for_each_bucket(Visit&& visit) const {
    for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
      const std::uint64_t word = words_.slabs[slab].load(std::memory_order_acquire);
      if (state_in(word) == State::kFree) continue;
      const unsigned step = shape_.descriptors_per_slab == 1 ? 1 : pages_in(class_in(word));
      for (unsigned sub = 0; sub < shape_.descriptors_per_slab; sub += step) {
        visit(bucket_at(slab, sub));
      }
    }
  }
  std::uint32_t leased_slabs() const;
  std::uint32_t used_buckets_bytes_slabs() const { return shape_.slab_count - free_slabs(); }

 private:
  enum class State : std::uint8_t { kFree = 0, kLeased, kShared };
  static constexpr unsigned kOwnerShift = 40;
  static constexpr unsigned kClassShift = 34;
  static constexpr unsigned kStateShift = 32;
  static constexpr unsigned kAccountShift = 16;
  // |  owner : 24 | .. | class : 2 | state : 2 | account : 16 | free : 16 |
  static_assert(kOwnerShift + Owner::kBits == 64);
  static_assert(kClassShift + 2 <= kOwnerShift && kStateShift + 2 == kClassShift);
  static_assert((kAccountsMax & (kAccountsMax - 1)) == 0, "an account is masked out of a word");
  static_assert(kAccountsMax <= 1U << (kStateShift - kAccountShift));
  static_assert(kPagesPerBlock == kAccountShift, "one bit for each bucket of a carved slab");

  static constexpr std::uint64_t pack(Owner owner, SizeClass size_class, State state,
                                      AccountId account, std::uint16_t free) {
    return static_cast<std::uint64_t>(owner.bits()) << kOwnerShift |
           static_cast<std::uint64_t>(size_class) << kClassShift |
           static_cast<std::uint64_t>(state) << kStateShift |
           std::uint64_t{raw(account)} << kAccountShift | free;
  }
  static constexpr AccountId account_in(std::uint64_t word) {
    return static_cast<AccountId>(word >> kAccountShift & (kAccountsMax - 1));
  }
  static constexpr Owner owner_in(std::uint64_t word) {
    return Owner::from_bits(static_cast<std::uint32_t>(word >> kOwnerShift));
  }
  static constexpr SizeClass class_in(std::uint64_t word) {
    return static_cast<SizeClass>(word >> kClassShift & 3);
  }
  static constexpr State state_in(std::uint64_t word) {
    return static_cast<State>(word >> kStateShift & 3);
  }
  static constexpr std::uint16_t free_in(std::uint64_t word) {
    return static_cast<std::uint16_t>(word);
  }
  static constexpr std::uint16_t all_free(SizeClass size_class) {
    const unsigned buckets = kPagesPerBlock / pages_in(size_class);
    return static_cast<std::uint16_t>((std::uint32_t{1} << buckets) - 1);
  }
  // The descriptors of whole slabs stand side by side, those of carved ones behind them: large
  // files then use few pages and all sets of the caches. (With 16 descriptors a slab in a row,
  // random hits missed the second-level cache.)
  struct Place {
    std::uint32_t slab;
    unsigned sub;  // in pages
  };
  BucketIndex bucket_at(std::uint32_t slab, unsigned sub) const {
    CAIRN_DCHECK(slab < shape_.slab_count && sub < shape_.descriptors_per_slab);
    const std::uint32_t position =
        sub == 0 ? slab : shape_.slab_count + slab * (shape_.descriptors_per_slab - 1) + sub - 1;
    return static_cast<BucketIndex>(shape_.first_bucket + position);
  }
  Place place_of(BucketIndex bucket) const {
    CAIRN_DCHECK(contains(bucket));
    const std::uint32_t position = raw(bucket) - shape_.first_bucket;
    if (position < shape_.slab_count) return Place{position, 0};
    const std::uint32_t small = position - shape_.slab_count;
    const std::uint32_t others = shape_.descriptors_per_slab - 1;
    return Place{small / others, small % others + 1};
  }
  // A slab of the state `from` that `self` leases, and for what.
  struct Claim {
    State from;
    SizeClass size_class;
    Owner self;
    AccountId account;
  };
  bool lease_from(std::atomic<std::uint64_t>* hint, const Claim& wanted, std::uint32_t* cursor,
                  SlabIndex* slab);
  bool claim(std::uint32_t slab, const Claim& wanted);
  unsigned claim_behind(std::uint32_t after, Owner self, AccountId account,
                        std::span<std::uint32_t> slabs);
  unsigned claim_hinted(std::uint32_t word, std::uint64_t mask, Owner self, AccountId account,
                        std::span<std::uint32_t> slabs);
  bool is_sound(std::uint64_t word) const;
  std::uint64_t word_with_taken(std::uint64_t word, unsigned sub, SizeClass size_class) const;
  void note_taken(AccountId account, std::uint32_t slabs);
  void note_freed(AccountId account);
  void settle(std::uint32_t slab, Owner owner);
  void set_hint(std::uint32_t slab, std::uint64_t word);
  void restore_hint(std::uint32_t slab, std::uint64_t word);

  Words words_{};
  Shape shape_{};
};

}  // namespace cairn
