// SPDX-License-Identifier: Apache-2.0
// The boards that the service alone writes, or sleeps at: after this they say what a service says
// that has not begun yet. A death between two of its stores leaves none of them half told.
//
//   board        what is made of it
//   bells        nobody sleeps
//   events       nobody listens: the successor's reader says what it wants
//   organizer    does not wait for readers; reads may go to any tier
//   devices      no read goes around a tier
//   placement    a plan that names a tier which there is not: RAM
//   accounts     the bits that sum up reservations agree with them
//   warmer       no more slabs than there are
//
// All else the successor's parts set when they are made, or it stays: each word is whole by itself
// (the clock of stamps, device bandwidths, marks of room), or is written beside the one in force
// (rules, statements about parts).
//
// Thread safety: one thread, before those of the successor begin; clients at work.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

// Returns how many words could not be what a service wrote.
std::uint32_t mend_boards(const NodeMemory& memory);

}  // namespace cairn::node
