// SPDX-License-Identifier: Apache-2.0
// The directories of which a dead service has left names in the log. Their store has to make them
// durable: what has changed since the last record, nobody has seen.
//
// A successor asks no store before it serves: one that does not answer would keep it from all
// others. Until a directory's store has answered,
//  1. no data of a file of that store leaves the log, for a name may be in the log alone;
//  2. an fsync of that directory is answered when the log says that its store has the names.
//
// Thread safety: any thread; its lock is held during no call of the store or the log.
// Ownership: borrows memory and log.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/durable_log/durable_log.h"

namespace cairn::node {

// Makes a file system durable. Returns 0 or -errno.
using SyncStore = std::function<int(StoreId)>;

class LeftDirectories {
 public:
  LeftDirectories(const NodeMemory& memory, durable::DurableLog& log)
      : memory_(memory), log_(log) {}

  // All that the log has now. Before anything else is logged.
  void inherit();
  bool is_empty() const;
  void use_store_sync(SyncStore sync) { sync_store_ = std::move(sync); }

  // Has the store make them durable, all of one file system or of all. Returns 0 or the first
  // -errno: then those are still left.
  int store(std::optional<StoreId> only);
  // The directory is durable in its store, by an fsync of somebody. Returns 0 or -errno: then the
  // log does not say so.
  int note_stored(const ObjectKey& directory);

 private:
  Status retire(const ObjectKey& directory);
  int make_durable(const durable::FileIdentity& identity) const;

  const NodeMemory& memory_;
  durable::DurableLog& log_;
  SyncStore sync_store_;  // empty: nobody can
  // One thread at a time says that a store has a directory; before the other lock.
  std::mutex saying_;
  mutable std::mutex mutex_;
  durable::Lsn upto_ = durable::Lsn::kNone;  // as it was left
  durable::Lsn said_ = durable::Lsn::kNone;  // the last word of a store's answer
  std::vector<durable::LoggedDirectory> left_;
};

}  // namespace cairn::node
