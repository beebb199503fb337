// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/lease.h"

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"

namespace cairn {

FreshBlock Lease::take(BucketPool& pool, const Request& request, const BlockWorker& worker,
                       Fresh* fresh) {
  const Owner self = worker.self;
  const SizeClass size_class = request.size_class;
  if (owner_ != self) {
    forget();
    owner_ = self;
  }
  if (account_ != request.account) {
    drop(pool);
    account_ = request.account;
  }
  *fresh = Fresh();
  // Lowest first: memory that was touched before is used again, and the tier grows only as far as
  // it is needed.
  cursor_ = 0;
  const unsigned index = static_cast<unsigned>(size_class);
  if (size_class != SizeClass::k64KiB) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (has_carved_[index]) {
        if (FreshBlock block = pool.take(SlabIndex{carved_[index]}, worker)) return block;
        pool.give_back(SlabIndex{carved_[index]}, self);
        has_carved_[index] = false;
      }
      SlabIndex slab{};
      if (!pool.lease(size_class, self, &cursor_, &slab, account_)) return {};
      CAIRN_CRASH_POINT("lease.carved");
      carved_[index] = slab.value;
      has_carved_[index] = true;
      *fresh = Fresh{slab.value, 1};
    }
    return {};
  }
  if (whole_count_ == 0) {
    // A small pool is shared out in small portions, so that one thread cannot sit on all of it.
    const unsigned share = std::max(1u, pool.slab_count() / 64);
    const unsigned portion = std::min({std::max(1u, request.wanted), kSlabsMax, share});
    whole_limit_ = portion;
    whole_count_ = pool.lease_whole(self, std::span(whole_, portion), account_, last_);
    CAIRN_DCHECK(whole_count_ <= whole_limit_ && whole_limit_ <= kSlabsMax);
    CAIRN_CRASH_POINT("lease.whole");
    if (whole_count_ == 0) return {};
    last_ = whole_[whole_count_ - 1];
    std::reverse(whole_, whole_ + whole_count_);  // taken from the back: lowest address first
    const std::uint32_t lowest = whole_[whole_count_ - 1];
    if (whole_[0] - lowest + 1 == whole_count_) *fresh = Fresh{lowest, whole_count_};
  }
  return pool.take_whole(SlabIndex{whole_[--whole_count_]}, worker);
}

void Lease::release(BucketPool& pool, FreshBlock block, Owner self) {
  CAIRN_DCHECK(BlockDescriptor::owner_in(block.descriptor().word()) == self);
  SlabIndex slab{};
  if (owner_ == self && whole_count_ < whole_limit_ && pool.keep(block, self, &slab, account_)) {
    CAIRN_DCHECK(!block && whole_count_ < kSlabsMax);
    CAIRN_CRASH_POINT("lease.kept");
    whole_[whole_count_++] = slab.value;
  } else {
    pool.release(static_cast<FreshBlock&&>(block));
    CAIRN_CRASH_POINT("lease.released");
  }
}

void Lease::drop(BucketPool& pool) {
  CAIRN_DCHECK(whole_count_ == 0 || static_cast<bool>(owner_));
  CAIRN_CRASH_POINT("lease.dropping");
  whole_limit_ = 0;
  while (whole_count_ > 0) pool.give_back(SlabIndex{whole_[--whole_count_]}, owner_);
  for (unsigned index = 0; index < kSizeClasses - 1; ++index) {
    if (has_carved_[index]) pool.give_back(SlabIndex{carved_[index]}, owner_);
    has_carved_[index] = false;
  }
}

}  // namespace cairn
