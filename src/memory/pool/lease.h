// SPDX-License-Identifier: Apache-2.0
// A thread's stock of free buckets, so that placing a block takes no search and shares no line with
// other threads.
//
// Thread safety: none, one thread each. Ownership: gives everything back on drop(); what a killed
// process held is reclaimed by the service through the owner's name in the slab words.
#pragma once

#include <cstdint>

#include "memory/arena/owner.h"
#include "memory/pool/bucket_pool.h"

namespace cairn {

class Lease {
 public:
  static constexpr unsigned kSlabsMax = 16;  // 1 MiB: one large write's worth

  struct Request {
    SizeClass size_class;
    unsigned wanted = 1;  // as many as will be taken one after another
    AccountId account = AccountId::kNobody;
  };
  struct Fresh {
    std::uint32_t first_slab = 0;
    std::uint32_t count = 0;
  };
  // A free bucket, or nothing when the tier is full for the account. `*fresh` says which part of
  // the tier was leased anew, so that its pages can be populated in one call. The stock belongs to
  // one account: the rest of another's goes back first.
  FreshBlock take(BucketPool& pool, const Request& request, const BlockWorker& worker,
                  Fresh* fresh);

  // Frees a bucket as BucketPool::release() does. A whole slab may stay in stock for the next
  // take(): a thread that removes a file and writes it anew needs no search and no foreign line.
  // The stock never grows past what the last lease took. Requires: `self` has the block's lock.
  void release(BucketPool& pool, FreshBlock block, Owner self);

  // Gives every slab back. Requires: the same pool and owner as in take().
  void drop(BucketPool& pool);
  // Forgets everything without giving it back: the slabs belong to the parent process of a fork.
  void forget() { *this = Lease(); }
  Owner owner() const { return owner_; }

 private:
  Owner owner_;
  AccountId account_ = AccountId::kNobody;
  std::uint32_t cursor_ = 0;
  std::uint32_t last_ = BucketPool::kNoSlab;  // where the next lease goes on
  std::uint32_t whole_count_ = 0;
  std::uint32_t whole_limit_ = 0;                // how many the last lease was for
  std::uint32_t whole_[kSlabsMax] = {};          // leased slabs of the largest class, all unused
  std::uint32_t carved_[kSizeClasses - 1] = {};  // slab in use per small class
  bool has_carved_[kSizeClasses - 1] = {};
};

}  // namespace cairn
