// SPDX-License-Identifier: Apache-2.0
// Where the library's own descriptors begin: above the numbers that programs use.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

// The lowest number that private descriptors get: high, but not so high that every fork copies a
// huge table.
int descriptor_floor();

// Moves a descriptor to the floor or above. Returns its number, the old one when there is no other.
int move_high(int fd);

}  // namespace cairn
