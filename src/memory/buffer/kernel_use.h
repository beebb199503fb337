// SPDX-License-Identifier: Apache-2.0
// Files that the kernel works on itself, beyond reading and writing for a program: what it has made
// of them, and how long they are its own.
//
// Thread safety: any thread of any process.
#pragma once

#include <cstdint>

#include "memory/buffer/object_io.h"

namespace cairn {

// What the kernel itself goes on using when its user has gone (a loop device's file) stays in
// through mode for as long as the node lives. In units of its own on Object::through, so that the
// audit, which undoes what the dead have left, can tell it. Requires: the caller's through mode.
inline constexpr std::uint32_t kThroughForGood = std::uint32_t{1} << 16;
void keep_through_for_good(const ObjectAccess& access);
// It has not come to that use.
void undo_keeping(const ObjectAccess& access);
// The kernel has changed the file in ways that only it knows: its size and times are the file's.
// False when it cannot be asked. Requires: the object's lock, and through mode for as long.
bool adopt_kernel_state(const ObjectAccess& access);

// From here on the kernel keeps the offset of the open description, for which `fd` works: others
// share it who cannot take its lock. 0 or -errno.
int give_offset_to_kernel(const Actor& actor, OpenDescription& description, int fd);

// leave_through() for callers without a descriptor, who cannot see what the kernel has made of the
// file: the sweep after a death, for one. Other processes may have the file open and know an old
// size. So the file stays the kernel's until one of them, which has a descriptor, works on it.
inline constexpr std::uint32_t kThroughAbandoned = std::uint32_t{1} << 31;
void abandon_through(Actor& actor, ObjectIndex index);
// Takes over size and times and ends the through mode, if that is all that is left of it.
void end_abandoned_through(const ObjectAccess& access);
// The same when nobody has the file open any more: the next open looks anyway.
void forget_abandoned_through(Actor& actor, ObjectIndex index);
// A file that may be open past the buffers by an unmanaged name is the kernel's until an open finds
// that nobody else has it open. Requires: the caller has counted its open.
void end_suspected_through(const ObjectAccess& access);
inline bool is_through_suspected(const Object& object) {
  return (object.through.load(std::memory_order_seq_cst) & ~kThroughAbandoned) == kThroughSuspected;
}
inline bool is_through_abandoned(const Object& object) {
  return object.through.load(std::memory_order_seq_cst) == kThroughAbandoned;
}

}  // namespace cairn
