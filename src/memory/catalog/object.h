// SPDX-License-Identifier: Apache-2.0
// The record of one object: size and times as the application knows them, what the backing store
// has, and how many blocks, descriptors and mappings refer to it. Three cache lines: the first
// serves the hit path, the second opens, writes and flushes, and the third is for what outlives the
// node's memory.
//
// Invariants
//  1. An object is reclaimed only when opens, blocks, dirty_blocks and through are all 0, no error
//     is pending, and the durable log has nothing of it.
//  2. `size` is the application's size. Bytes at or past `store_size` read as zeros from the
//     backing store, so a gap there needs no read.
//  3. While `through` > 0, or a change of shape is under way, no block of the object comes: each
//     publisher asks takes_blocks() afterwards and takes its block back. So a drop of all blocks
//     that begins after one of them has dropped them all, and until it ends nothing is filled from
//     the store, nor stored behind the change.
//  4. `shape_sequence`: | ends of through mode : 16 | changes of shape : 16, odd while one is under
//     way |. A write that finds at its end that the shape has changed, or was the kernel's and
//     finds that through mode has ended, repeats itself. Writes that find the shape odd at their
//     beginning wait for the object's lock, and who gets it then ends the change for one who died.
//  5. `times_dirty` means that mtime_ns is newer than the backing store's and is still to be set
//     there.
//
// Thread safety: atomics by any thread; `lock` serialises changes of shape, store_* and the
// settling of times; `append_lock` serialises appends. Lock order: append_lock, lock, block lock,
// directory line.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomic_max.h"
#include "base/check.h"
#include "base/ids.h"
#include "base/object_key.h"
#include "memory/arena/owned_lock.h"
#include "memory/catalog/object_handling.h"

namespace cairn {

enum ObjectFlags : std::uint32_t {
  kObjectLive = 1u << 0,
  kObjectUnlinked = 1u << 1,    // no name is left: dropped when the last descriptor closes
  kObjectTimesDirty = 1u << 2,  // mtime_ns is to be set on the backing store
  kObjectHandedOver = 1u << 3,  // the service holds a writable descriptor of the backing file
  kObjectFailing = 1u << 4,     // the last flush failed; see error_number
  // on a network file system, where to set a size or a time waits for the data before it
  kObjectRemote = 1u << 5,
  // the kernel has a say in each write: it takes away set-id bits and capabilities, or refuses by
  // attribute. So each write goes to the store at once.
  kObjectGuarded = 1u << 6,
  // no longer found by its key: the file is gone, its inode may be another's soon
  kObjectRetired = 1u << 7,
  // bits 8 to 31: how the file is treated; see memory/catalog/object_handling.h
};

// In `through`, beside the counts: the file was opened past the buffers by a name that is not a
// managed one, and may be open so. It is nobody's reference to the record: the maker of a new one
// finds the trace of that open again (memory/catalog/unmanaged_opens.h).
inline constexpr std::uint32_t kThroughSuspected = std::uint32_t{1} << 30;

enum ObjectMark : std::uint8_t {
  // the service is storing some of it, and settles size and times afterwards
  kMarkBeingFlushed = 1u << 0,
  // the home in the handling is a rule's word, which no policy changes
  kMarkHomeRuled = 1u << 1,
  // the service has a descriptor of the file to fetch from, and closes it when nobody reads it
  kMarkFetchedFrom = 1u << 2,
  // the service keeps a descriptor of the closed file for fsync, and closes it when it is deleted
  kMarkKeptForSync = 1u << 3,
  // line 2 of the record has something in it; a record without the mark has zeros there, but for a
  // count
  kMarkKnownElsewhere = 1u << 4,
  // the holder of the object's lock sets size and times in the store; after its death they are
  // still to be set
  kMarkBeingSettled = 1u << 5,
  // it was cut to nothing: what is written instead is made durable when it is closed
  kMarkRewritten = 1u << 6,
  // nobody serves the node, and a program has left word that what the log has of it is void
  kMarkOutOfLog = 1u << 7,
};

// What the store has failed to keep of a file that the durable log has: its records stay.
enum LogTrouble : std::uint32_t {
  // perhaps a part of this file, until an fsync of the file itself says otherwise
  kLogDoubted = 1u << 0,
  // a part of this file, which no tier has any more: the log is all that has it
  kLogLost = 1u << 1,
};

// What a service that dies would take with it of an object's way to its store.
enum StoreTrouble : std::uint32_t {
  // an fsync of the service is under way, or nobody has dealt with its answer yet: the kernel says
  // once that it has failed
  kSyncUnderWay = 1u << 0,
  // the store has lost bytes that no tier has, which each drain says
  kBytesLost = 1u << 1,
  // the durable log has bytes of an earlier node that the store lacks: nobody may use the file
  // before a recovery has brought them there
  kOwedByLog = 1u << 2,
};

struct Object {
  // Line 0: identity and what a hit reads.
  std::uint64_t place;  // | kind : 8 | store : 56 |, so that a finder compares one word
  std::uint64_t inode;
  std::int64_t birth_ns;
  std::atomic<std::uint64_t> size;
  std::atomic<std::uint32_t> flags;
  std::atomic<std::uint32_t> through;
  std::atomic<std::uint32_t> opens;
  std::atomic<std::uint32_t> blocks;
  std::atomic<std::uint32_t> dirty_blocks;
  std::atomic<std::uint32_t> shape_sequence;
  OwnedLock lock;
  OwnedLock append_lock;

  // Line 1: times, the backing store's state, errors.
  std::atomic<std::int64_t> mtime_ns;
  std::atomic<std::int64_t> ctime_ns;
  // as last seen or set by us: an outside change shows as a difference
  std::atomic<std::int64_t> store_mtime_ns;
  std::atomic<std::int64_t> store_ctime_ns;
  std::atomic<std::uint64_t> store_size;
  // advances on each failed flush; descriptors report each step once
  std::atomic<std::uint32_t> error_sequence;
  std::atomic<std::uint8_t> error_number;
  std::atomic<std::uint8_t> marks;  // ObjectMark
  // The numbers of all blocks that it has had are below 2 to the power of this: searches for all
  // blocks end there.
  std::atomic<std::uint8_t> number_bits;
  std::atomic<Durability> durability;
  std::atomic<std::uint32_t> dirty_low;   // hint: no dirty block below
  std::atomic<std::uint32_t> dirty_high;  // hint: no dirty block at or above
  std::atomic<std::uint32_t> dirty_since_ms;
  std::atomic<std::uint32_t> writers;  // open descriptions that may write

  // Line 2: what is known of it elsewhere, which is 0 until kMarkKnownElsewhere is set, so that a
  // program's open does not touch the line; and the service's own opens.
  std::atomic<std::uint64_t> path;          // where the durable log has its path
  std::atomic<std::uint64_t> log_position;  // end of its last record in the durable log
  std::atomic<std::uint32_t> home_node;     // the node that answers for it; 0: this one
  // how many of `opens` are the service's, never too large: its successor takes them back. 0 when
  // `opens` is.
  std::atomic<std::uint32_t> service_opens;
  std::atomic<std::uint32_t> log_trouble;  // LogTrouble
  // how often the store has failed to make durable what it had of the file, or of some file
  std::atomic<std::uint32_t> sync_failures;
  // the number of the last death of a process that may have changed bytes of it and not come to say
  // so in the times (ObjectTable::note_cut_write)
  std::atomic<std::uint32_t> cut_writes;
  std::atomic<std::uint32_t> store_trouble;  // StoreTrouble
  std::atomic<std::uint32_t> store_owed;     // see note_store_owed()
  std::uint32_t spare[5];

  static constexpr unsigned kStoreBits = 56;
  static constexpr std::uint64_t place_of(const ObjectKey& key) {
    return static_cast<std::uint64_t>(key.kind) << kStoreBits | raw(key.store);
  }
  StoreId store() const { return StoreId{place & ((std::uint64_t{1} << kStoreBits) - 1)}; }
  ObjectKind kind() const { return static_cast<ObjectKind>(place >> kStoreBits); }
  ObjectKey key() const { return ObjectKey{kind(), store(), FileId{inode, birth_ns}}; }
  bool is_of(const ObjectKey& key) const {
    return place == place_of(key) && inode == key.id.inode && birth_ns == key.id.birth_ns;
  }
  // Requires: nobody finds the record yet.
  void set_key(const ObjectKey& key) {
    CAIRN_DCHECK(raw(key.store) >> kStoreBits == 0);
    place = place_of(key);
    inode = key.id.inode;
    birth_ns = key.id.birth_ns;
  }
  // Zeros what the record's last object had there. Requires: nobody finds the record yet.
  void forget_elsewhere() {
    durability.store(Durability::kStore, std::memory_order_relaxed);
    if (!is_marked(kMarkKnownElsewhere)) return;
    path.store(0, std::memory_order_relaxed);
    log_position.store(0, std::memory_order_relaxed);
    home_node.store(0, std::memory_order_relaxed);
    log_trouble.store(0, std::memory_order_relaxed);
    sync_failures.store(0, std::memory_order_relaxed);
    cut_writes.store(0, std::memory_order_relaxed);
    store_trouble.store(0, std::memory_order_relaxed);
    // The count goes on: an fsync of the last object's pays nothing of the next one's.
    store_owed.store(store_owed.load(std::memory_order_relaxed) & ~std::uint32_t{1},
                     std::memory_order_relaxed);
  }
  bool has(std::uint32_t flag) const { return (flags.load(std::memory_order_acquire) & flag) != 0; }
  void set(std::uint32_t flag) { flags.fetch_or(flag, std::memory_order_acq_rel); }
  void clear(std::uint32_t flag) { flags.fetch_and(~flag, std::memory_order_acq_rel); }
  // Whether the service has a descriptor that it is to close once the file is gone.
  bool is_held_by_service() const { return has(kObjectHandedOver) || is_marked(kMarkKeptForSync); }
  bool is_marked(ObjectMark mark) const { return (marks.load() & mark) != 0; }
  // Returns whether it was.
  bool mark(ObjectMark mark, bool is_so) {
    const std::uint8_t before =
        is_so ? marks.fetch_or(mark) : marks.fetch_and(static_cast<std::uint8_t>(~mark));
    return (before & mark) != 0;
  }
  // Before a block is published: a reader that then sees it knows of its number, and by `blocks`
  // that there may be one.
  void count_block(BlockNumber number) {
    blocks.fetch_add(1, std::memory_order_seq_cst);
    const auto bits = static_cast<std::uint8_t>(std::bit_width(raw(number)));
    std::uint8_t seen = number_bits.load(std::memory_order_seq_cst);
    while (seen < bits && !number_bits.compare_exchange_weak(seen, bits)) {
    }
  }
  // All numbers of its blocks are less than this; 0 when there is none.
  std::uint64_t numbers_end() const {
    if (blocks.load(std::memory_order_seq_cst) == 0) return 0;
    return std::uint64_t{1} << (number_bits.load(std::memory_order_seq_cst) & 63);
  }
  // All but its durability.
  ObjectHandling handling() const {
    return ObjectHandling::from_bits(flags.load(std::memory_order_relaxed) & ObjectHandling::kMask);
  }
  // Leaves a record alone that names no object any more: its flags say that it is free.
  void set_handling(const ObjectHandling& handling) {
    std::uint32_t seen = flags.load(std::memory_order_relaxed);
    const std::uint32_t bits = handling.bits() & ObjectHandling::kMask;
    while ((seen & kObjectLive) != 0 && (seen & ObjectHandling::kMask) != bits &&
           !flags.compare_exchange_weak(seen, (seen & ~ObjectHandling::kMask) | bits,
                                        std::memory_order_acq_rel)) {
    }
  }
  // Whether the durable log may have records of it, which a crash would replay: what changes the
  // file past the log is to be told to the service.
  bool is_in_log() const { return log_position.load(std::memory_order_seq_cst) != 0; }
  // The log may have bytes of it that the store has lost and no tier has.
  bool is_log_needed() const { return log_trouble.load() != 0 || is_in_trouble(kBytesLost); }
  // Whether an fsync of it is the log's business.
  bool is_made_durable_by_log() const {
    const bool is_of_node = durability.load(std::memory_order_relaxed) == Durability::kNode &&
                            handling().mode != BufferingMode::kSync;
    return is_of_node || is_in_log();
  }
  // Bytes have gone to the store past the log, and nobody has made them safe there: an fsync of
  // the store is owed. Called before the write of them returns, or their blocks turn clean. The
  // lowest bit of `store_owed` says it, the others count the calls: an fsync pays for those of
  // before. The debt stays while it is under way, so that others who ask meanwhile, and a
  // successor, pay as well.
  void note_store_owed() {
    if (durability.load(std::memory_order_relaxed) == Durability::kStore && !is_in_log()) return;
    if (!is_marked(kMarkKnownElsewhere)) mark(kMarkKnownElsewhere, true);
    if ((store_owed.fetch_add(2) & 1) == 0) store_owed.fetch_or(1);
  }
  bool is_store_owed() const { return (store_owed.load() & 1) != 0; }
  // An fsync of the store has succeeded that began when `store_owed` was `before`.
  void note_store_paid(std::uint32_t before) {
    (void)store_owed.compare_exchange_strong(before, before & ~std::uint32_t{1});
  }
  void note_sync_failure() {
    mark(kMarkKnownElsewhere, true);
    sync_failures.fetch_add(1, std::memory_order_seq_cst);
  }
  void note_trouble(StoreTrouble trouble, bool is_so) {
    if (is_so) mark(kMarkKnownElsewhere, true);
    if (is_so)
      store_trouble.fetch_or(trouble, std::memory_order_seq_cst);
    else
      store_trouble.fetch_and(~std::uint32_t{trouble}, std::memory_order_seq_cst);
  }
  bool is_in_trouble(StoreTrouble trouble) const { return (store_trouble.load() & trouble) != 0; }
  static constexpr std::uint32_t kShapeMask = 0xffff;
  static constexpr std::uint32_t kThroughEnded = kShapeMask + 1;
  static constexpr bool is_odd(std::uint32_t shape) { return (shape & 1) != 0; }
  bool is_changing_shape() const { return is_odd(shape_sequence.load(std::memory_order_seq_cst)); }
  // Somebody has counted himself in, so the record has to stay.
  bool is_in_kernels_use() const { return (through.load() & ~kThroughSuspected) != 0; }
  bool takes_blocks() const {
    return through.load(std::memory_order_seq_cst) == 0 && !is_changing_shape();
  }
  // Grows `size` to at least `end`.
  void extend_to(std::uint64_t end) { raise_to(size, end); }
};

// Every field at its byte: a change of the layout is a new version of the node's memory.
namespace object_layout {
inline constexpr std::size_t kLine = 64;
static_assert(sizeof(Object) == 3 * kLine, "three cache lines per object");
static_assert(offsetof(Object, place) == 0);
static_assert(offsetof(Object, inode) == 8);
static_assert(offsetof(Object, birth_ns) == 16);
static_assert(offsetof(Object, size) == 24);
static_assert(offsetof(Object, flags) == 32);
static_assert(offsetof(Object, through) == 36);
static_assert(offsetof(Object, opens) == 40);
static_assert(offsetof(Object, blocks) == 44);
static_assert(offsetof(Object, dirty_blocks) == 48);
static_assert(offsetof(Object, shape_sequence) == 52);
static_assert(offsetof(Object, lock) == 56);
static_assert(offsetof(Object, append_lock) == 60);
static_assert(offsetof(Object, mtime_ns) == kLine);
static_assert(offsetof(Object, ctime_ns) == kLine + 8);
static_assert(offsetof(Object, store_mtime_ns) == kLine + 16);
static_assert(offsetof(Object, store_ctime_ns) == kLine + 24);
static_assert(offsetof(Object, store_size) == kLine + 32);
static_assert(offsetof(Object, error_sequence) == kLine + 40);
static_assert(offsetof(Object, error_number) == kLine + 44);
static_assert(offsetof(Object, marks) == kLine + 45);
static_assert(offsetof(Object, number_bits) == kLine + 46);
static_assert(offsetof(Object, durability) == kLine + 47);
static_assert(offsetof(Object, dirty_low) == kLine + 48);
static_assert(offsetof(Object, dirty_high) == kLine + 52);
static_assert(offsetof(Object, dirty_since_ms) == kLine + 56);
static_assert(offsetof(Object, writers) == kLine + 60);
static_assert(offsetof(Object, path) == 2 * kLine);
static_assert(offsetof(Object, log_position) == 2 * kLine + 8);
static_assert(offsetof(Object, home_node) == 2 * kLine + 16);
static_assert(offsetof(Object, service_opens) == 2 * kLine + 20);
static_assert(offsetof(Object, log_trouble) == 2 * kLine + 24);
static_assert(offsetof(Object, sync_failures) == 2 * kLine + 28);
static_assert(offsetof(Object, cut_writes) == 2 * kLine + 32);
static_assert(offsetof(Object, store_trouble) == 2 * kLine + 36);
static_assert(offsetof(Object, store_owed) == 2 * kLine + 40);
static_assert(offsetof(Object, spare) == 2 * kLine + 44);
}  // namespace object_layout

}  // namespace cairn
