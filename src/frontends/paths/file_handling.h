// SPDX-License-Identifier: Apache-2.0
// The treatment of a file that a program opens: the rules of the node and the run, over the run's
// own settings, over the node's.
//
// Thread safety: configure() before the first open; the rest from any thread.
#pragma once

#include <cstdint>

#include "memory/catalog/object_handling.h"
#include "memory/tiers/node_memory.h"

namespace cairn {

class FileHandling {
 public:
  // `bits` is the value of CAIRN_HANDLING: an ObjectHandling's bits in hexadecimal, or null where
  // the run has no settings of its own.
  static void configure(const char* bits, std::uint32_t run);
  // Requires: `fd` is open on a managed file of `size` bytes; `flags` as it was opened.
  static ObjectHandling of(const NodeMemory& memory, int fd, std::uint64_t size, int flags);
};

}  // namespace cairn
