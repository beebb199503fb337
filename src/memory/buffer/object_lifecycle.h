// SPDX-License-Identifier: Apache-2.0
// Opening, shaping, storing and closing an object: everything but the bytes.
//
// All functions return 0 or -errno unless they say otherwise. Thread safety: any thread of any
// process.
#pragma once

#include <cstdint>

#include "memory/buffer/hand_over.h"
#include "memory/buffer/object_io.h"

namespace cairn {

// Finds or makes the object of an open file and counts the open. Clean blocks of a file that was
// changed from outside since they were read are dropped (close-to-open consistency). kNone: the
// file cannot be buffered. `service` answers for files of unserved processes; without it no new
// object is made that may be theirs.
ObjectIndex open_object(Actor& actor, Backing& backing, const StoreStatus& status, bool may_write,
                        HandOver* service = nullptr);

// Undoes open_object(). Brings size and times of the backing file up to date if it was written
// (rule: at the latest on close), drops the blocks of an unlinked file with its last descriptor,
// stores the data at once while foreign programs run. Returns the first unreported store error as
// -errno (close reports it once).
int close_object(const ObjectAccess& access, bool may_write);

// For the sweep after a client's death: the same without a descriptor of the file.
void abandon_object(Actor& actor, ObjectIndex index, bool may_write);

// Cuts or extends. The caller has checked that the descriptor may write.
int truncate_object(const ObjectAccess& access, std::uint64_t size);

// fallocate(2) with any mode. Blocks of the range are stored first and dropped where the operation
// changes bytes.
int allocate_object(const ObjectAccess& access, int mode, std::uint64_t offset,
                    std::uint64_t length);

// Stores all dirty blocks and brings size and times up to date; with `durable` also fsyncs the
// backing file. `error_seen` (may be null) is the description's: an earlier background error is
// reported once through it.
int sync_object(const ObjectAccess& access, bool durable, std::atomic<std::uint32_t>* error_seen);

// Nobody serves the node any more, and what its log has of the file is older: the file is stored,
// durably, and recovery has word that the log's records of it are void
// (memory/flush/orphan_words.h). 0, also where there is no log, or -errno. Requires: none of the
// object's locks.
int leave_log(const ObjectAccess& access);
// The store has all of the object, and what the log has of it is to end: by the service, or by
// leave_log() where there is none. 0 or -errno. Requires: none of the object's locks.
int end_in_log(const ObjectAccess& access);
// The same before the store's file is changed, if the log knows the file. Where that cannot be, the
// next fsync tries it again.
void leave_log_if_alone(const ObjectAccess& access);

// After a failed fsync of the backing file the kernel may have dropped pages that it had taken:
// everything of the object that is still resident counts as dirty again, so that the next attempt
// writes it anew.
void redirty_object(Actor& actor, ObjectIndex index);

// The store is to become longer than this process may make a file.
bool must_grow_past_limit(const Object& object);

// Size and times of the backing file as the application knows them; data may still be dirty.
int settle_object(const ObjectAccess& access);

// Through mode (rule 6): after enter_through() the kernel's view of the file is the truth, until as
// many leave_through().
int enter_through(const ObjectAccess& access);
// The first half of it, for one who inherits a mapping: finish_entering() is the second.
void count_through(Actor& actor, ObjectIndex index);
// Requires: the object knows what size the kernel has given the file; else abandon_through().
void leave_through(Actor& actor, ObjectIndex index);
// Somebody has the file in through mode, but may still be storing what the tiers have of it: after
// this the range is the kernel's. To be called before the kernel reads or writes it for a program.
int finish_entering(const ObjectAccess& access, std::uint64_t offset, std::uint64_t length);

// Returns when the change of shape under way has ended. If its process died in the middle, the
// caller has ended it.
void wait_for_shape(const ObjectAccess& access);
// Requires: the object's lock. Ends a change of shape that was left open by a death.
void end_dead_change(const ObjectAccess& access);
// Requires: the object's lock, and a change of shape that was left open by a death. Drops what lies
// behind the end, which needs no file; the change stays open.
void drop_cut_blocks(const ObjectAccess& access);

// Drops every block; dirty ones too when `discard_dirty`, else access.backing gets them first.
int drop_blocks(const ObjectAccess& access, std::uint64_t begin, std::uint64_t end,
                bool discard_dirty, PlacementReason reason);

// The file lost its last name, as its link count says after the call that took it. Its dirty data
// is dropped at once if nobody can reach it any more.
void unlink_object(Actor& actor, ObjectIndex index);
// True for a file without a name that nobody has open or is just opening: its data is of no use.
bool is_abandoned(const NodeMemory& memory, ObjectIndex index);
// Drops the data of such a file. False when it is not one.
bool discard_abandoned(Actor& actor, ObjectIndex index);

// The application set times (utimensat and friends) or attributes on the backing file through the
// kernel: take over what the kernel has now. `mtime_set`: also the modification time. Requires: the
// object's lock, since before the kernel was asked, so that no settling comes in between.
void adopt_times(Actor& actor, ObjectIndex index, const StoreStamp& stamp, bool mtime_set);

// Size and times as the application must see them, over what the kernel said. `blocks_512` is
// st_blocks, may be null.
struct VisibleStamp {
  std::uint64_t size;
  std::int64_t mtime_ns;
  std::int64_t ctime_ns;
  std::uint64_t extra_blocks_512;  // dirty bytes the backing store has not allocated yet
};
VisibleStamp visible_stamp(const Object& object, const StoreStamp& store);

}  // namespace cairn
