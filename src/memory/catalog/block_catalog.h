// SPDX-License-Identifier: Apache-2.0
// All blocks of a node as one process maps them: their objects, the directory, the counts of what
// is dirty, and the one hook that every transition of a block passes.
//
// Thread safety: immutable after construction; what it points to is synchronised by the tables
// themselves. Ownership: the tables live in the control segment.
#pragma once

#include "base/ids.h"
#include "memory/arena/owner.h"
#include "memory/catalog/block_directory.h"
#include "memory/catalog/dirty_blocks.h"
#include "memory/catalog/object_table.h"

namespace cairn {

// The event of a block, named after the method that made it.
enum class BlockStep : std::uint8_t {
  kPublished,   // a bucket has become the block's place
  kFilled,      // pages got the store's bytes
  kWriteBegan,  // pages are about to change
  kWritten,     // pages have changed
  kWriteLost,   // a write ended without all of its bytes
  kRedirtied,   // what was thought stored is to be stored again
  kFlushBegan,
  kFlushEnded,
  kCut,        // pages belong to the block no more
  kRelocated,  // the block lives in another bucket
  kVacated,    // the block has left the tiers
};

struct BlockChange {
  BlockStep step;
  BlockState from;
  BlockState to;
  std::uint16_t pages;
};

class BlockCatalog {
 public:
  BlockCatalog() = default;
  BlockCatalog(OwnerTable owners, ObjectTable objects, BlockDirectory directory, DirtyBlocks dirty)
      : owners_(owners), objects_(objects), directory_(directory), dirty_(dirty) {}

  OwnerTable& owners() { return owners_; }
  const OwnerTable& owners() const { return owners_; }
  ObjectTable& objects() const { return objects_; }
  BlockDirectory& directory() const { return directory_; }
  const DirtyBlocks& dirty() const { return dirty_; }
  BlockDescriptor& block(BucketIndex index) const { return directory_.at(index); }
  BucketIndex index_of(const BlockDescriptor& block) const {
    return static_cast<BucketIndex>(&block - &directory_.at(BucketIndex::kNone));
  }

  // The hook. What turns dirty passes it before its state says so, everything else afterwards.
  // Today it keeps the counts of what is dirty; a change that does not touch them is free of cost.
  // Requires: the block's lock.
  void pass(BucketIndex bucket, const BlockChange& change) const {
    const bool was_counted = counts_as_dirty(change.from);
    const bool is_counted = counts_as_dirty(change.to);
    if (was_counted == is_counted) return;
    if (is_counted) {
      count_dirty(bucket);
    } else {
      count_clean(bucket);
    }
  }
  // The same for a block that changes its bucket, whose counts it takes along. Requires: both
  // locks, and the new place is not published yet.
  void pass_relocation(BucketIndex from, BucketIndex to) const {
    if (counts_as_dirty(block(from).state())) dirty_.note_moved(from, block(from), to, block(to));
  }

 private:
  void count_dirty(BucketIndex bucket) const;
  void count_clean(BucketIndex bucket) const;

  OwnerTable owners_;
  mutable ObjectTable objects_;
  mutable BlockDirectory directory_;
  DirtyBlocks dirty_;
};

// One thread at work on blocks: under which owner it takes their locks.
struct BlockWorker {
  const BlockCatalog* catalog;
  Owner self;
};

}  // namespace cairn
