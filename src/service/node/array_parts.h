// SPDX-License-Identifier: Apache-2.0
// What the service knows and says of arrays, beside gathering their chunks.
//
// Thread safety: as its parts. Ownership: borrows what it is made of.
#pragma once

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/control/array_commands.h"
#include "service/control/array_report.h"
#include "service/control/kept_state.h"
#include "service/gathering/array_book.h"
#include "service/gathering/array_hints.h"
#include "service/gathering/chunk_gatherer.h"

namespace cairn::node {

struct ArrayParts {
  ArrayParts(const NodeConfig& config, const NodeMemory& memory, const ChunkGatherer& gatherer,
             KeptState& kept)
      : report({config, memory, book, hints, gatherer}), commands(report, hints, kept) {}

  ArrayBook book;
  ArrayHints hints;
  ArrayReport report;
  ArrayCommands commands;
};

}  // namespace cairn::node
