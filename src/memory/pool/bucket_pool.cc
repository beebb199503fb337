// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/bucket_pool.h"

#include <bit>

#include "base/check.h"

namespace cairn {
namespace {

constexpr unsigned kBits = 64;

// Keeps the bits of those bytes of a word of hints that are all ones: all slabs of their line are
// free.
constexpr std::uint64_t whole_bytes(std::uint64_t bits) {
  bits &= bits >> 4;
  bits &= bits >> 2;
  bits &= bits >> 1;
  constexpr std::uint64_t kLowestOfEach = 0x0101010101010101;
  return (bits & kLowestOfEach) * 0xff;
}
static_assert(whole_bytes(0xff00'7fff'0000'00ff) == 0xff00'00ff'0000'00ff);
static_assert(BucketPool::kSlabsTogether * sizeof(std::uint64_t) == 64);

}  // namespace

void BucketPool::format() {
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    words_.free_hint[slab / kBits].fetch_or(std::uint64_t{1} << (slab % kBits),
                                            std::memory_order_relaxed);
  }
  words_.free_slabs->store(shape_.slab_count, std::memory_order_release);
}

// A death between a slab's word and its counts leaves them off, which the sweep finds.
void BucketPool::note_taken(AccountId account, std::uint32_t slabs) {
  words_.free_slabs->fetch_sub(slabs, std::memory_order_relaxed);
  words_.accounts->charge(account, slabs);
}

void BucketPool::note_freed(AccountId account) {
  words_.accounts->discharge(account, 1);
  words_.free_slabs->fetch_add(1, std::memory_order_relaxed);
}

bool BucketPool::lease(SizeClass size_class, Owner self, std::uint32_t* cursor, SlabIndex* slab,
                       AccountId account) {
  const unsigned index = static_cast<unsigned>(size_class);
  if (index < kSizeClasses - 1 && shape_.descriptors_per_slab > 1) {
    std::uint32_t from_start = 0;
    const Claim part{State::kShared, size_class, self, account};
    if (lease_from(words_.partial_hint[index], part, &from_start, slab)) return true;
  }
  if (accounts().grant(account, 1, free_slabs()) == 0 ||
      !lease_from(words_.free_hint, {State::kFree, size_class, self, account}, cursor, slab)) {
    return false;
  }
  if (accounts().overdrawn(account, 1, free_slabs()) == 0) return true;
  give_back(*slab, self);
  return false;
}

bool BucketPool::lease_from(std::atomic<std::uint64_t>* hint, const Claim& wanted,
                            std::uint32_t* cursor, SlabIndex* slab) {
  const std::uint32_t words = (shape_.slab_count + kBits - 1) / kBits;
  if (words == 0) return false;
  std::uint32_t at = *cursor / kBits % words;
  // One word more than there are, because the first is searched from the cursor on only.
  std::uint64_t mask = ~std::uint64_t{0} << (*cursor % kBits);
  for (std::uint32_t step = 0; step <= words; ++step) {
    std::uint64_t bits = hint[at].load(std::memory_order_acquire) & mask;
    while (bits != 0) {
      const std::uint32_t candidate = at * kBits + static_cast<unsigned>(std::countr_zero(bits));
      bits &= bits - 1;
      hint[at].fetch_and(~(std::uint64_t{1} << (candidate % kBits)), std::memory_order_acq_rel);
      if (!claim(candidate, wanted)) continue;
      *cursor = candidate + 1;
      slab->value = candidate;
      return true;
    }
    mask = ~std::uint64_t{0};
    at = at + 1 == words ? 0 : at + 1;
  }
  return false;
}

unsigned BucketPool::lease_whole(Owner self, std::span<std::uint32_t> slabs, AccountId account,
                                 std::uint32_t after) {
  slabs = slabs.first(
      accounts().grant(account, static_cast<std::uint32_t>(slabs.size()), free_slabs()));
  CAIRN_DCHECK(static_cast<bool>(self));
  const std::uint32_t words = (shape_.slab_count + kBits - 1) / kBits;
  unsigned leased = 0;
  const bool is_small = slabs.size() < kSlabsTogether;
  if (is_small) {
    leased = claim_behind(after, self, account, slabs);
    for (std::uint32_t word = 0; word < words && leased == 0 && !slabs.empty(); ++word) {
      const std::uint64_t hints = words_.free_hint[word].load(std::memory_order_acquire);
      const std::uint64_t whole = whole_bytes(hints);
      if (whole != 0) leased = claim_hinted(word, whole, self, account, slabs);
    }
  }
  const std::size_t enough = is_small && leased > 0 ? leased : slabs.size();
  for (std::uint32_t word = 0; word < words && leased < enough; ++word) {
    leased += claim_hinted(word, ~std::uint64_t{0}, self, account, slabs.subspan(leased));
  }
  CAIRN_DCHECK(leased <= slabs.size());
  if (leased == 0) return 0;
  note_taken(account, leased);
  const std::uint32_t too_many = accounts().overdrawn(account, leased, free_slabs());
  for (std::uint32_t count = 0; count < too_many; ++count)
    give_back(SlabIndex{slabs[--leased]}, self);
  return leased;
}

// Claims slabs that share the line of `after` and stand behind it.
unsigned BucketPool::claim_behind(std::uint32_t after, Owner self, AccountId account,
                                  std::span<std::uint32_t> slabs) {
  const std::uint32_t next = after + 1;  // 0 behind kNoSlab: its line has nothing before it
  if (next % kSlabsTogether == 0 || next >= shape_.slab_count) return 0;
  const unsigned line = next % kBits / kSlabsTogether * kSlabsTogether;
  const std::uint64_t behind = (std::uint64_t{0xff} << line) & ~std::uint64_t{0} << (next % kBits);
  return claim_hinted(next / kBits, behind, self, account, slabs);
}

// Claims slabs of the masked part of one word of hints until `slabs` is full or there are no more.
// The hints are cleared first, as many as are wanted at once: a claim that fails says that the hint
// was stale.
unsigned BucketPool::claim_hinted(std::uint32_t word, std::uint64_t mask, Owner self,
                                  AccountId account, std::span<std::uint32_t> slabs) {
  const std::uint64_t leased =
      pack(self, SizeClass::k64KiB, State::kLeased, account, all_free(SizeClass::k64KiB));
  unsigned count = 0;
  for (;;) {
    std::uint64_t rest = words_.free_hint[word].load(std::memory_order_acquire) & mask;
    std::uint64_t lowest = 0;
    for (unsigned wanted = static_cast<unsigned>(slabs.size()) - count; wanted > 0 && rest != 0;
         --wanted) {
      lowest |= rest & (~rest + 1);
      rest &= rest - 1;
    }
    if (lowest == 0) return count;
    lowest &= words_.free_hint[word].fetch_and(~lowest, std::memory_order_acq_rel);
    for (; lowest != 0; lowest &= lowest - 1) {
      const std::uint32_t slab = word * kBits + static_cast<unsigned>(std::countr_zero(lowest));
      CAIRN_DCHECK(count < slabs.size());
      if (slab >= shape_.slab_count) continue;  // a stray store has set a hint behind the last one
      std::uint64_t free = 0;                   // the word of a free slab
      if (words_.slabs[slab].compare_exchange_strong(free, leased, std::memory_order_acq_rel)) {
        slabs[count++] = slab;
      }
    }
  }
}

bool BucketPool::claim(std::uint32_t slab, const Claim& wanted) {
  const auto [from, size_class, self, account] = wanted;
  if (slab >= shape_.slab_count) return false;  // a stray store has set a hint behind the last one
  std::uint64_t seen = words_.slabs[slab].load(std::memory_order_acquire);
  for (;;) {
    if (state_in(seen) != from) return false;
    const bool fresh = from == State::kFree;
    if (!fresh && (class_in(seen) != size_class || free_in(seen) == 0)) return false;
    const std::uint16_t free =
        fresh ? (shape_.descriptors_per_slab == 1 ? std::uint16_t{1} : all_free(size_class))
              : free_in(seen);
    const std::uint64_t leased =
        pack(self, size_class, State::kLeased, fresh ? account : account_in(seen), free);
    if (words_.slabs[slab].compare_exchange_weak(seen, leased, std::memory_order_acq_rel)) {
      if (fresh) note_taken(account, 1);
      return true;
    }
  }
}

FreshBlock BucketPool::take(SlabIndex slab, const BlockWorker& worker) {
  std::uint64_t seen = words_.slabs[slab.value].load(std::memory_order_acquire);
  const std::uint16_t free = free_in(seen);
  FreshBlock block;
  if (owner_in(seen) != worker.self || free == 0) return block;
  CAIRN_DCHECK(state_in(seen) == State::kLeased);
  const unsigned bit = static_cast<unsigned>(std::countr_zero(free));
  const SizeClass size_class = class_in(seen);
  const BucketIndex bucket =
      bucket_at(slab.value, bit * pages_in(size_class) % shape_.descriptors_per_slab);
  // Locked before its bit is cleared: invariant 1. Others only ever set bits of a slab that we
  // lease.
  block = FreshBlock::lock(worker, bucket);
  block.set_size_class(size_class);
  words_.slabs[slab.value].fetch_and(~(std::uint64_t{1} << bit), std::memory_order_acq_rel);
  return block;
}

FreshBlock BucketPool::take_whole(SlabIndex slab, const BlockWorker& worker) {
  // Locked before the bit is cleared: invariant 1.
  FreshBlock block = FreshBlock::lock(worker, bucket_at(slab.value, 0));
  std::uint64_t seen = words_.slabs[slab.value].load(std::memory_order_relaxed);
  for (;;) {
    const AccountId account = account_in(seen);  // another's, when the run has ended meanwhile
    const bool is_ours = seen == pack(worker.self, SizeClass::k64KiB, State::kLeased, account,
                                      all_free(SizeClass::k64KiB));
    if (!is_ours) {
      block.unlock();
      return block;
    }
    const std::uint64_t taken = pack(Owner(), SizeClass::k64KiB, State::kShared, account, 0);
    if (words_.slabs[slab.value].compare_exchange_weak(seen, taken, std::memory_order_acq_rel))
      break;
  }
  block.set_size_class(SizeClass::k64KiB);
  return block;
}

void BucketPool::give_back(SlabIndex slab, Owner self) { settle(slab.value, self); }

void BucketPool::settle(std::uint32_t slab, Owner owner) {
  CAIRN_DCHECK(slab < shape_.slab_count && static_cast<bool>(owner));
  std::uint64_t seen = words_.slabs[slab].load(std::memory_order_acquire);
  for (;;) {
    if (state_in(seen) != State::kLeased || owner_in(seen) != owner) return;
    const SizeClass size_class = class_in(seen);
    const std::uint16_t all = shape_.descriptors_per_slab == 1 ? 1 : all_free(size_class);
    const bool unused = free_in(seen) == all;
    const std::uint64_t next =
        unused ? 0 : pack(Owner(), size_class, State::kShared, account_in(seen), free_in(seen));
    if (words_.slabs[slab].compare_exchange_weak(seen, next, std::memory_order_acq_rel)) {
      if (unused) note_freed(account_in(seen));
      set_hint(slab, next);
      return;
    }
  }
}

bool BucketPool::keep(FreshBlock& block, Owner self, SlabIndex* slab, AccountId account) {
  CAIRN_DCHECK(block.descriptor().state() == BlockState::kFree);
  if (!is_whole_slab(block.bucket())) return false;
  slab->value = place_of(block.bucket()).slab;
  // What take_whole() left; anything else is a carved slab, or one whose lessee still has it.
  std::uint64_t seen = pack(Owner(), SizeClass::k64KiB, State::kShared, account, 0);
  const std::uint64_t leased =
      pack(self, SizeClass::k64KiB, State::kLeased, account, all_free(SizeClass::k64KiB));
  if (words_.slabs[slab->value].load(std::memory_order_relaxed) != seen) return false;
  // It is empty already: after a death in between, the sweep finds it locked, taken and without a
  // block.
  const bool is_ours =
      words_.slabs[slab->value].compare_exchange_strong(seen, leased, std::memory_order_acq_rel);
  // Only the account can have changed, as its run has ended: then it is released as it is.
  CAIRN_DCHECK(is_ours || account_in(seen) != account);
  if (!is_ours) return false;
  block.set_changed();
  block.unlock();
  return true;
}

void BucketPool::release(FreshBlock block) {
  CAIRN_DCHECK(block.descriptor().state() == BlockState::kFree);
  const auto [slab, sub] = place_of(block.bucket());
  const SizeClass size_class = block.descriptor().size_class();
  const unsigned bit = sub / pages_in(size_class);
  CAIRN_DCHECK(sub % pages_in(size_class) == 0 || shape_.descriptors_per_slab == 1);
  CAIRN_DCHECK(is_taken(block.bucket()));  // released once
  std::uint64_t seen = words_.slabs[slab].load(std::memory_order_acquire);
  for (;;) {
    const std::uint16_t free = static_cast<std::uint16_t>(free_in(seen) | 1u << bit);
    const std::uint16_t all = shape_.descriptors_per_slab == 1 ? 1 : all_free(size_class);
    const bool empty = state_in(seen) == State::kShared && free == all;
    const std::uint64_t next =
        empty ? 0 : pack(owner_in(seen), class_in(seen), state_in(seen), account_in(seen), free);
    if (words_.slabs[slab].compare_exchange_weak(seen, next, std::memory_order_acq_rel)) {
      if (empty) note_freed(account_in(seen));
      set_hint(slab, next);
      break;
    }
  }
  block.set_changed();
}

void BucketPool::set_hint(std::uint32_t slab, std::uint64_t word) {
  const std::uint64_t bit = std::uint64_t{1} << (slab % kBits);
  if (state_in(word) == State::kFree) {
    words_.free_hint[slab / kBits].fetch_or(bit, std::memory_order_acq_rel);
  } else if (state_in(word) == State::kShared && free_in(word) != 0) {
    const auto index = static_cast<unsigned>(class_in(word));
    if (index < kSizeClasses - 1) {
      words_.partial_hint[index][slab / kBits].fetch_or(bit, std::memory_order_acq_rel);
    }
  }
}

std::uint32_t BucketPool::reclaim_leases(Owner dead) {
  std::uint32_t reclaimed = 0;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    const std::uint64_t word = words_.slabs[slab].load(std::memory_order_acquire);
    if (state_in(word) == State::kLeased && owner_in(word) == dead) {
      settle(slab, dead);
      ++reclaimed;
    } else if (state_in(word) != State::kLeased) {
      set_hint(slab, word);  // a death between the word and the hint loses the hint only
    }
  }
  return reclaimed;
}

std::uint32_t BucketPool::reclaim_dead_leases(const OwnerTable& owners) {
  std::uint32_t reclaimed = 0;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    const std::uint64_t word = words_.slabs[slab].load(std::memory_order_acquire);
    if (state_in(word) != State::kLeased) {
      restore_hint(slab, word);
    } else if (!owners.is_alive(owner_in(word))) {
      settle(slab, owner_in(word));
      ++reclaimed;
    }
  }
  return reclaimed;
}

bool BucketPool::is_sound(std::uint64_t word) const {
  const State state = state_in(word);
  if (state == State::kFree) return word == 0;
  const SizeClass size_class = class_in(word);
  const bool is_carved = size_class != SizeClass::k64KiB;
  const std::uint16_t all = all_free(size_class);
  const bool is_lessee_right = (state == State::kLeased) == static_cast<bool>(owner_in(word));
  return state <= State::kShared && static_cast<unsigned>(size_class) < kSizeClasses &&
         (shape_.descriptors_per_slab > 1 || !is_carved) && (free_in(word) & ~all) == 0 &&
         (state == State::kLeased || free_in(word) != all) && is_lessee_right &&
         word == pack(owner_in(word), size_class, state, account_in(word), free_in(word));
}

// The word after the bucket at `sub` was taken for a block of this class, where that can be.
std::uint64_t BucketPool::word_with_taken(std::uint64_t word, unsigned sub,
                                          SizeClass size_class) const {
  const bool may_be_carved = shape_.descriptors_per_slab > 1;
  if (!may_be_carved || static_cast<unsigned>(size_class) >= kSizeClasses)
    size_class = SizeClass::k64KiB;
  const std::uint64_t carved =
      state_in(word) != State::kFree
          ? word
          : pack(Owner(), size_class, State::kShared, AccountId::kNobody, all_free(size_class));
  if (class_in(carved) != size_class || sub % pages_in(size_class) != 0) return word;
  return carved & ~(std::uint64_t{1} << (sub / pages_in(size_class)));
}

// As set_hint(), but writes only where the bit is missing: the sweep must not dirty every line of
// the hints.
void BucketPool::restore_hint(std::uint32_t slab, std::uint64_t word) {
  const auto index = static_cast<unsigned>(class_in(word));
  const std::uint64_t bit = std::uint64_t{1} << (slab % kBits);
  const std::atomic<std::uint64_t>* hint = nullptr;
  if (state_in(word) == State::kFree) {
    hint = words_.free_hint;
  } else if (free_in(word) != 0 && index < kSizeClasses - 1) {
    hint = words_.partial_hint[index];
  }
  if (hint == nullptr || (hint[slab / kBits].load(std::memory_order_relaxed) & bit) != 0) return;
  set_hint(slab, word);
}

bool BucketPool::is_taken(BucketIndex bucket) const {
  const auto [slab, sub] = place_of(bucket);
  const std::uint64_t word = words_.slabs[slab].load(std::memory_order_acquire);
  if (state_in(word) == State::kFree) return false;
  const unsigned step = shape_.descriptors_per_slab == 1 ? 1 : pages_in(class_in(word));
  if (sub % step != 0) return false;
  return (free_in(word) >> (sub / step) & 1) == 0;
}

std::uint32_t BucketPool::count_free_slabs() const {
  std::uint32_t free = 0;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    if (state_in(words_.slabs[slab].load(std::memory_order_relaxed)) == State::kFree) ++free;
  }
  return free;
}

void BucketPool::correct_free_slabs(std::int32_t by) const {
  words_.free_slabs->fetch_add(static_cast<std::uint32_t>(by), std::memory_order_relaxed);
}

void BucketPool::count_used_slabs(std::span<std::uint32_t, kAccountsMax> used) const {
  for (std::uint32_t& count : used) count = 0;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    const std::uint64_t word = words_.slabs[slab].load(std::memory_order_relaxed);
    if (state_in(word) != State::kFree) ++used[raw(account_in(word))];
  }
}

void BucketPool::transfer(AccountId from, AccountId to) {
  constexpr std::uint64_t kAccountMask = std::uint64_t{kAccountsMax - 1} << kAccountShift;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    std::uint64_t seen = words_.slabs[slab].load(std::memory_order_relaxed);
    while (state_in(seen) != State::kFree && account_in(seen) == from) {
      const std::uint64_t next = (seen & ~kAccountMask) | std::uint64_t{raw(to)} << kAccountShift;
      if (!words_.slabs[slab].compare_exchange_weak(seen, next, std::memory_order_acq_rel))
        continue;
      words_.accounts->charge(to, 1);
      words_.accounts->discharge(from, 1);
      break;
    }
  }
}

std::uint32_t BucketPool::leased_slabs() const {
  std::uint32_t leased = 0;
  for (std::uint32_t slab = 0; slab < shape_.slab_count; ++slab) {
    if (state_in(words_.slabs[slab].load(std::memory_order_relaxed)) == State::kLeased) ++leased;
  }
  return leased;
}

}  // namespace cairn
