// SPDX-License-Identifier: Apache-2.0
// How a record of an open file ends: with the last of the application's descriptors, or because the
// process has no right to it.
//
//   open --close_tracked(), forget_tracked()--> one descriptor fewer --the last--> record given
//   back
//
// All functions return 0 or -errno where they return a result, and leave errno alone.
//
// Thread safety: any thread. Ownership: a record goes back to its pool with its last descriptor.
#pragma once

#include "base/signal_gate.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {

// Closes one of the application's descriptors that is tracked. Returns 0 or -errno; the descriptor
// is gone either way.
int close_tracked(int fd);
// Gives up the table's entry for `fd` without closing the number itself, at which another file
// stands already.
int forget_tracked(int fd);

// Counts a call on the record behind `fd` (OpenFile::count), which has no number of its own.
// Null when there is none: another thread may close it at any time. A handler that jumped out
// between the two would leave the count behind: the caller keeps handlers out (SignalGateGuard).
OpenFile* hold_file(int fd);
void release_held(OpenFile& file);
// visit(OpenFile&) for each descriptor by which the process may write a buffered file, held.
template <typename Visit>
void for_each_writer(Visit&& visit) {
  DescriptorTable::for_each([&](int fd, const OpenFile&) {
    const SignalGateGuard gate;
    OpenFile* const file = hold_file(fd);
    if (file == nullptr) return;
    if (file->may_write && file->object != ObjectIndex::kNone) visit(*file);
    release_held(*file);
  });
}

// By calls that take their time anyway: once the node is lost (orphaned_node.h), this process
// stores what it has open for writing.
void look_after_node();
// By a write that may be a hit: one in many looks. Each thread counts its own, because a count that
// all share would go from processor to processor with each write.
inline void look_after_node_at_write() {
  constexpr std::uint32_t kWritesPerLook = 16;
  static constinit thread_local std::uint32_t writes = 0;
  if (__builtin_expect(writes++ % kWritesPerLook == 0, 0)) look_after_node();
}
// Stores the object through a descriptor of this process that may write, for one that may only read
// and that has no service to ask; `durable`: flushes it, too. Returns whether that was possible.
bool store_by_own_writer(Actor& actor, ObjectIndex object, bool durable = false);

// What DescriptorTable had for `fd`, where another file stands already. Null: nothing.
void release_displaced(OpenFile* file, int fd);
// The kernel is about to close the real descriptor `fd`, on which the record works: it gets a
// private one. False when there is no number for it.
bool leave_number(OpenFile& file, int fd);
// The kernel has not closed it.
void return_to_number(OpenFile& file, int fd);

// Ends the process's hold on the description, and with the last hold the description itself.
int release_record(OpenFile& file);
// In the child of a fork, a record that only the parent has: its descriptors are closed.
void drop_in_child(OpenFile& file);
// Gives the record back to its pool and closes its private descriptor, unless that is
// `placeholder`, the application's own number.
void discard_record(OpenFile& file, int placeholder);

}  // namespace cairn
