// SPDX-License-Identifier: Apache-2.0
// Whether a process still has the node's memory mapped: after an exec nothing of it is.
//
// Thread safety: a function without state.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cairn::node {

enum class NodeMapping : std::uint8_t {
  kMapped,
  kNotMapped,
  // The kernel does not say: the process may not be looked at (PR_SET_DUMPABLE, a program that its
  // user may not read). It may still work on the arena.
  kUnknown
};

NodeMapping node_mapping_of(pid_t pid);

}  // namespace cairn::node
