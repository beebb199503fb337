// SPDX-License-Identifier: Apache-2.0
// Dirty blocks of one object to the backing store: in order of offset, coalesced, with writers at
// work.
//
// For every block: lock, claim it, note the sequence, unlock; write the dirty pages of many blocks
// in one large call straight from the buckets; lock again: unchanged blocks turn clean, the others
// stay dirty. Used by the service in the background and by clients for fsync; both use a backing of
// their own.
//
// Thread safety: any number of flushers; a block has one claimant at a time, the others wait for it
// (fsync) or pass (background).
#pragma once

#include <errno.h>

#include <cstdint>

#include "memory/backing/backing.h"
#include "memory/tiers/actor.h"

namespace cairn {

// Pages of one block, as they are about to be stored.
struct StoredPages {
  BlockNumber number{};
  std::uint16_t pages = 0;
  const std::byte* bytes = nullptr;  // of the whole block; borrowed
  std::size_t inside = 0;            // bytes of the block that are inside the file
};

// Knows which blocks the durable log has. Thread safe.
class StoreWitness {
 public:
  // Whether the log has the block as it was in this bucket at this sequence.
  virtual bool is_logged(ObjectIndex object, BlockNumber number, BucketIndex bucket,
                         std::uint32_t sequence) = 0;
  // Whether these bytes are what the log has of the pages: also of a block that has moved since.
  virtual bool has_bytes(ObjectIndex object, const StoredPages& pages) = 0;
  // These are about to be stored: where the log has older bytes of the block, it gets them first.
  virtual void log_newer(ObjectIndex object, const StoredPages& pages) = 0;

 protected:
  ~StoreWitness() = default;
};

// Hears which dirty pages their tier does not give. Thread safe.
class LossWitness {
 public:
  virtual void note_unreadable(ObjectIndex object, BlockNumber number, std::uint16_t pages) = 0;

 protected:
  ~LossWitness() = default;
};

struct FlushRequest {
  FlushRequest(ObjectIndex of, Backing& to) : object(of), backing(to) {}

  ObjectIndex object;
  Backing& backing;  // writable
  std::uint64_t begin = 0;
  std::uint64_t end = UINT64_MAX;
  std::uint64_t bytes_max = UINT64_MAX;  // stop after about so much: the background takes turns
  bool wait_for_others = true;           // fsync must; the background need not
  PlacementReason reason = PlacementReason::kAsked;  // for the journal of moves
  StoreWitness* witness = nullptr;  // null: whatever is stored, the log may not have
  LossWitness* losses = nullptr;    // null: nobody wants to know
  // Blocks that the log does not have stay dirty. Requires: a witness, not wait_for_others.
  bool only_logged = false;
  // The log gets what it has older bytes of before the store does. Requires: a witness.
  bool log_comes_first = false;
};

struct FlushResult {
  // 0 or -errno of the first failed write; what failed stays dirty. Without one, -EIO when a tier
  // has not given all dirty pages: those stay dirty, and everything else is stored.
  int error = 0;
  bool is_of_tier = false;  // that it is an error of the second kind
  std::uint64_t bytes = 0;
  std::uint64_t blocks_left = 0;  // dirty blocks that were passed over or re-dirtied
  bool has_found = false;         // there was a dirty block
};

// Flushes data only; see settle_times() for size and times.
FlushResult flush_object(Actor& actor, const FlushRequest& request);

// Makes the store at least `end` bytes long (sparse), never shorter. Returns 0 or -errno.
int extend_store(Actor& actor, ObjectIndex object, Backing& backing, std::uint64_t end);

// After a flush, or when a file is closed: sets the application's mtime on the store, or, as
// long as some of the data is not there, one that shows that (memory/flush/unfinished_time.h), and
// notes what the store says now, so that our own write is not mistaken for somebody else's. Also
// extends the store to the application's size. Returns 0 or -errno; then the times stay
// dirty.
int settle_store(Actor& actor, ObjectIndex object, Backing& backing);

// Notes that a flush failed: the next fsync or close of every description reports it.
void record_store_error(Object& object, int error_number);

// Whether 0 or -errno says that the store, or its user's part of it, is full.
inline bool lacks_room(int error) { return error == -ENOSPC || error == -EDQUOT; }

}  // namespace cairn
