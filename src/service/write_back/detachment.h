// SPDX-License-Identifier: Apache-2.0
// The node leaves, and its clients may stay: from here on they store themselves what they write.
//
// Thread safety: any thread; to be repeated when what came before it has been received and stored:
// a client may have been between its look and its store.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

// What stands in ServiceBoard::detached. An orphaned node may have left data behind that is in its
// memory alone: processes that cannot see that memory must not use its files.
enum class Detachment : std::uint32_t {
  kEnded = ServiceBoard::kEndedInOrder,
  kOrphaned = ServiceBoard::kOrphaned,
};

// No client hands a file over any more, and none takes a file for handed over.
void detach_clients(const NodeMemory& memory, Detachment how = Detachment::kEnded);

}  // namespace cairn::node
