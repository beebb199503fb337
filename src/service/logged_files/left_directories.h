// SPDX-License-Identifier: Apache-2.0
// The directories of which a dead service has left names in the log. Their store has to make them
// durable: what has changed since the last record, nobody has seen.
//
// A successor asks no store before it serves: one that does not answer would keep it from all
// others. Until a directory's store has answered,
//  1. no data of a file of that store leaves the log, for a name may be in the log alone;
//  2. nothing of such a file is void, for a name in the log may bring it back;
//  3. an fsync of that directory is answered when the log says that its store has the names.
//
// Thread safety: any thread; its lock is taken before the log's, and not held during an fsync.
// Ownership: borrows memory and log.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/durable_log/durable_log.h"

namespace cairn::node {

class LeftDirectories {
 public:
  LeftDirectories(const NodeMemory& memory, durable::DurableLog& log)
      : memory_(memory), log_(log) {}

  // All that the log has now. Before anything else is logged.
  void inherit();
  bool is_empty() const;
  bool has_any_of(StoreId store) const;

  // Has the store make them durable, all of one file system or of all. Returns 0 or the first
  // -errno: then those are still left.
  int store(std::optional<StoreId> only);
  // The directory is durable in its store, by an fsync of somebody. Returns 0 or -errno: then the
  // log does not say so.
  int note_stored(const ObjectKey& directory);

 private:
  Status retire(const ObjectKey& directory);
  void give_up(const ObjectKey& directory);

  const NodeMemory& memory_;
  durable::DurableLog& log_;
  mutable std::mutex mutex_;
  durable::Lsn upto_ = durable::Lsn::kNone;  // as it was left
  durable::Lsn said_ = durable::Lsn::kNone;  // the last word of a store's answer
  std::vector<durable::LoggedDirectory> left_;
};

}  // namespace cairn::node
