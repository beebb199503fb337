// SPDX-License-Identifier: Apache-2.0
// Files that the kernel works on itself, beyond reading and writing for a program: what it has made
// of them, and how long they are its own.
//
// Thread safety: any thread of any process.
#pragma once

#include <cstdint>

#include "buffer/object_lifecycle.h"

namespace cairn {

// What the kernel itself goes on using when its user has gone (a loop device's file) stays in
// through mode for as long as the node lives. In units of its own on Object::through, so that the
// audit, which undoes what the dead have left, can tell it. Requires: the caller's through mode.
inline constexpr std::uint32_t kThroughForGood = std::uint32_t{1} << 16;
void keep_through_for_good(const ObjectAccess& access);
// It has not come to that use.
void undo_keeping(const ObjectAccess& access);
// The kernel has changed the file in ways that only it knows: its size and times are the file's.
// Requires: the caller's through mode.
void adopt_store_state(const ObjectAccess& access);

}  // namespace cairn
