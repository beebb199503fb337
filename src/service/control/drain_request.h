// SPDX-License-Identifier: Apache-2.0
// Drains that the command line asks for: with progress to the asking connection, until all is
// stored or the connection closes.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <cstddef>
#include <vector>

#include "service/control/control_server.h"
#include "service/durability/node_durability.h"
#include "service/write_back/drain.h"

namespace cairn::node {

// An answer names no more files than these.
inline constexpr std::size_t kUnstoredMax = 100;

class DrainRequest {
 public:
  DrainRequest(const NodeMemory& memory, StoreFiles& files, Flusher& flusher,
               NodeDurability& durability)
      : memory_(memory), files_(files), flusher_(flusher), durability_(durability) {}

  // `request` may limit the time, and may want what is dirty to get to the durable tier first
  // (`keep`).
  DrainOutcome run(ControlPeer& peer, const Json& request) const;
  // What a durable tier has of the files that are dirty: how many `files`, how many it cannot have
  // (`refused`), or that it is not known. Null without such a tier.
  Json kept() const;
  // The files that are dirty now, without a drain.
  DirtyView dirty(std::size_t files_max) const { return view_dirty(memory_, files_, files_max); }

 private:
  const NodeMemory& memory_;
  StoreFiles& files_;
  Flusher& flusher_;
  NodeDurability& durability_;
};

// The files of a drain or status that are not stored.
Json unstored_json(const std::vector<UnstoredFile>& files);
// Adds the outcome of a drain to the reply to its request.
void add_outcome(Json& reply, const DrainOutcome& outcome);

}  // namespace cairn::node
