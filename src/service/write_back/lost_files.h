// SPDX-License-Identifier: Apache-2.0
// The files that have lost bytes: neither their store nor the tiers have them. Each of them is
// listed once, until it is gone or its bytes are to be stored again.
//
// Thread safety: all functions from any thread. Ownership: borrows the memory.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "service/write_back/sync_listener.h"

namespace cairn::node {

class LostFiles {
 public:
  explicit LostFiles(const NodeMemory& memory) : memory_(memory) {}

  void note(ClosedFile file);
  // An fsync of the file has made these bytes durable, which were stored since.
  void note_stored(const ObjectKey& key, const StoredRanges& stored);
  // Nobody knows which files of the file system: they are lost for ever.
  void note_of_store(dev_t device);
  // The entry of a file system has no object.
  std::vector<ClosedFile> all() const;

  // A file of `known` may be stored again since: a program that ran it has ended, for one. Returns
  // whether any of them was lost until now. `listener` may be null.
  bool look_again(const std::vector<ClosedFile>& known, SyncListener* listener);

  // Whether there are files whose room a descriptor here would keep once they are deleted.
  bool keeps_any() const;
  void release_deleted();

 private:
  // Nobody can find it any more.
  bool is_gone(const ClosedFile& file) const;
  bool is_over(const ClosedFile& file, SyncListener* listener) const;
  // Both require the lock.
  std::size_t places() const;
  void forget(const ObjectKey& key);

  const NodeMemory& memory_;
  mutable std::mutex mutex_;
  std::map<ObjectKey, ClosedFile> files_;
  std::set<dev_t> stores_;
};

}  // namespace cairn::node
