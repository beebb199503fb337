// SPDX-License-Identifier: Apache-2.0
// The catalog as a store of metadata: the object table and the block directory of one node's
// memory, which all processes map. Every process works under an owner of its own, as clients do.
//
//   object   acquire() makes the record; a look-up compares key, size and time where they are; an
//            update grows the size and sets the times, as a write does
//   block    a create describes a bucket and publishes it; a look-up finds the bucket; an update
//            moves the block to another bucket, as a tier's change does
//
// The buckets are taken from the pool beforehand, two for each block: what they cost is measured by
// the worker `buckets`. One that holds no block is locked by its process, as the pool demands.
#pragma once

#include "memory/tiers/actor.h"
#include "memory/tiers/node_memory.h"
#include "metadata_store.h"

namespace metadata {

// Where every block is in each version, for all processes: [version][number].
struct Places {
  std::atomic<uint32_t>* of_version[2] = {};
};

inline cairn::NodeMemory create_node_memory(uint32_t records, unsigned processes) {
  cairn::MemoryShape shape;
  // The smallest buckets, two for each block; each process may leave a slab half used.
  shape.tier_bytes[0] =
      (uint64_t{records} * 2 / cairn::kPagesPerBlock + processes + 1) * cairn::kBlockBytes;
  shape.clients_max = 8;
  shape.objects_max = 2 * records + 16;
  auto memory = cairn::NodeMemory::create(shape, {});
  if (!memory) worker::fail("no memory for the node");
  return std::move(memory.value());
}

class Catalog final : public Store {
 public:
  Catalog(const cairn::NodeMemory& memory, const Places& places, unsigned process,
          std::span<const uint32_t> own)
      : places_(places) {
    actor_.memory = &memory;
    actor_.self = memory.owners().current(static_cast<uint16_t>(process + 1));
    actor_.counters = &memory.slot(static_cast<uint16_t>(process + 1)).shards[0];
    for (const uint32_t number : own) {
      for (std::atomic<uint32_t>* of_version : places_.of_version) {
        of_version[number] = cairn::raw(take_bucket());
      }
    }
  }
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;
  ~Catalog() override { actor_.drop_leases(); }

  void run(Kind kind, Operation operation, std::span<const uint32_t> numbers,
           uint32_t version) override {
    const bool is_object = kind == Kind::kObject;
    if (operation == Operation::kCreate) {
      for (const uint32_t number : numbers)
        is_object ? create_object(number) : create_block(number);
    } else if (operation == Operation::kUpdate) {
      for (const uint32_t number : numbers) is_object ? update_object(number) : move_block(number);
    } else {
      for (const uint32_t number : numbers) {
        is_object ? look_up_object(number, version) : look_up_block(number, version);
      }
    }
  }
  void check(Kind kind, std::span<const uint32_t> numbers, uint32_t version) override {
    run(kind, Operation::kLookUp, numbers, version);
  }

 private:
  static cairn::ObjectKey catalog_key(uint32_t number) {
    const Key key = key_of(number);
    return cairn::file_key(key.device, key.inode, key.birth_ns);
  }
  static cairn::ObjectIndex object_of(uint32_t number) {
    return static_cast<cairn::ObjectIndex>(number / kBlocksPerObject + 1);
  }
  static cairn::BlockNumber block_of(uint32_t number) {
    return static_cast<cairn::BlockNumber>(number % kBlocksPerObject);
  }
  cairn::BucketIndex place(uint32_t number, uint32_t version) const {
    return static_cast<cairn::BucketIndex>(
        places_.of_version[version][number].load(std::memory_order_relaxed));
  }

  cairn::BucketIndex take_bucket() {
    cairn::Lease::Fresh fresh;
    cairn::FreshBlock block =
        actor_.leases[0].take(actor_.memory->pool(cairn::TierId::kMemory),
                              {cairn::SizeClass::k4KiB}, actor_.worker(), &fresh);
    if (!block) worker::fail("the tier is full");
    return std::move(block).leave_locked();
  }

  void create_object(uint32_t number) {
    const Content content = content_of(number, 0);
    const cairn::StoreStamp stamp{content.size, content.mtime_ns, content.mtime_ns};
    cairn::Acquisition how;
    const cairn::ObjectIndex index = actor_.memory->objects().acquire(
        catalog_key(number), stamp, actor_.self, actor_.owners(), &how);
    if (index == cairn::ObjectIndex::kNone || !how.is_new) worker::fail("no new record");
  }

  cairn::Object& find_object(uint32_t number) const {
    const cairn::ObjectIndex index = actor_.memory->objects().find(catalog_key(number));
    if (index == cairn::ObjectIndex::kNone) worker::fail("a record is missing");
    return actor_.object(index);
  }

  void look_up_object(uint32_t number, uint32_t version) const {
    const cairn::Object& object = find_object(number);
    const Content wanted = content_of(number, version);
    if (object.size.load(std::memory_order_acquire) != wanted.size ||
        object.mtime_ns.load(std::memory_order_relaxed) != wanted.mtime_ns) {
      worker::fail("wrong record of object " + std::to_string(number));
    }
  }

  void update_object(uint32_t number) const {
    const Content content = content_of(number, 1);
    cairn::Object& object = find_object(number);
    object.mtime_ns.store(content.mtime_ns, std::memory_order_relaxed);
    object.ctime_ns.store(content.mtime_ns, std::memory_order_relaxed);
    object.extend_to(content.size);
  }

  void create_block(uint32_t number) const {
    const cairn::BucketIndex bucket = place(number, 0);
    cairn::FreshBlock fresh = cairn::FreshBlock::of_locked(actor_.worker(), bucket);
    cairn::LockedBlock block;
    fresh.publish(object_of(number), block_of(number), cairn::PlacementReason::kNone, &block);
    if (!block) worker::fail("a block was not published");
  }

  void look_up_block(uint32_t number, uint32_t version) const {
    const cairn::BucketIndex bucket =
        actor_.memory->directory().find(object_of(number), block_of(number));
    const uint64_t word = actor_.memory->block(bucket).word(std::memory_order_acquire);
    if (bucket != place(number, version) || cairn::BlockDescriptor::is_locked(word)) {
      worker::fail("wrong place of block " + std::to_string(number));
    }
  }

  // The new bucket is locked since it was taken; the old one stays locked, free for the next block.
  void move_block(uint32_t number) const {
    const cairn::BlockDirectory& found = actor_.memory->directory();
    const cairn::BucketIndex from = found.find(object_of(number), block_of(number));
    if (from != place(number, 0)) worker::fail("wrong place of block " + std::to_string(number));
    const cairn::BucketIndex to = place(number, 1);
    cairn::LockedBlock block(actor_.worker(), from);
    cairn::UnclaimedBlock old(block);
    if (!old) worker::fail("a block was not moved");
    cairn::Relocated moved = std::move(old).relocate(
        cairn::FreshBlock::of_locked(actor_.worker(), to), cairn::PlacementReason::kNone);
    (void)std::move(moved.emptied).leave_locked();
  }

  Places places_;
  cairn::Actor actor_;
};

}  // namespace metadata
