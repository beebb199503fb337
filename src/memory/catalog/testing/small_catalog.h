// SPDX-License-Identifier: Apache-2.0
// A few objects and buckets with all their tables, in the memory of a test.
//
// Thread safety: as the catalog's. Ownership: owns the tables.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "memory/catalog/block_life.h"

namespace cairn {

class SmallCatalog {
 public:
  static constexpr std::uint32_t kBuckets = 8;
  static constexpr unsigned kOwners = 8;

  // All are alive until kill().
  BlockWorker worker(std::uint16_t slot) const { return BlockWorker{&catalog_, Owner(slot, 0)}; }
  void kill(std::uint16_t slot) { catalog_.owners().advance(slot); }
  const BlockCatalog& catalog() const { return catalog_; }
  BlockDescriptor& block(std::uint32_t bucket) { return descriptors_[bucket]; }
  const BlockDescriptor& block(std::uint32_t bucket) const { return descriptors_[bucket]; }
  const Object& object(ObjectIndex index) const { return objects_[raw(index)]; }
  std::uint64_t dirty_bytes() const { return flusher_board_.dirty_bytes.load(); }
  bool is_marked_dirty(std::uint32_t bucket) const {
    return (dirty_map_.load() >> bucket & 1) != 0;
  }

  // A free bucket of the largest class, as a pool gives it.
  FreshBlock take(std::uint16_t slot, std::uint32_t bucket) const {
    FreshBlock fresh = FreshBlock::lock(worker(slot), BucketIndex{bucket});
    fresh.set_size_class(SizeClass::k64KiB);
    return fresh;
  }
  // A clean block with these pages.
  LockedBlock place(std::uint32_t bucket, ObjectIndex object, BlockNumber number,
                    std::uint16_t pages) const {
    LockedBlock block;
    take(1, bucket).publish(object, number, PlacementReason::kRead, &block);
    block.fill(pages);
    return block;
  }
  // Where the directory says that the block is, looked up slot by slot; 0 for nowhere.
  std::uint32_t place_of(ObjectIndex object, BlockNumber number) const {
    const std::uint64_t wanted = BlockDescriptor::identity_of(object, number);
    for (const auto& slot : line_.slots) {
      const auto bucket = static_cast<std::uint32_t>(slot.load());
      if (bucket != 0 && bucket < kBuckets && descriptors_[bucket].identity() == wanted)
        return bucket;
    }
    return 0;
  }

 private:
  std::array<std::atomic<std::uint32_t>, kOwners> generations_{};
  std::array<Object, 8> objects_{};
  HashLine object_line_{};
  HashLine line_{};
  std::array<BlockDescriptor, kBuckets> descriptors_{};
  ObjectBoard object_board_{};
  UnservedBoard unserved_board_{};
  FlusherBoard flusher_board_{};
  std::atomic<std::uint64_t> dirty_map_{0};
  BlockCatalog catalog_{OwnerTable(generations_.data(), kOwners),
                        ObjectTable(objects_.data(), 8, HashLines(&object_line_, 1), &object_board_,
                                    &unserved_board_),
                        BlockDirectory(HashLines(&line_, 1), descriptors_.data(), kBuckets),
                        DirtyBlocks(&dirty_map_, kBuckets, &flusher_board_)};
};

}  // namespace cairn
