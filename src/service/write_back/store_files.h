// SPDX-License-Identifier: Apache-2.0
// The descriptors of backing files that clients handed over: what the service stores dirty data
// through.
//
// Invariants
//  1. An object with dirty blocks has its descriptor here, or in a message that is still in a
//     client's socket.
//  2. A descriptor is dropped only after kObjectHandedOver was cleared while nothing of the object
//     is dirty and nobody has it open, or nobody for writing where that is enough; a client that
//     opens it in between sees the cleared flag and hands over anew.
//
// Thread safety: all functions from any thread. Ownership: a descriptor closes with the last
// StoreFilePtr to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "service/write_back/unsynced_files.h"

namespace cairn::node {

class StoreFiles {
 public:
  explicit StoreFiles(const NodeMemory& memory) : memory_(memory), unsynced_(memory) {}
  // Borrows it. Before the first file comes; null: nobody any more.
  void use_listener(SyncListener* listener) { unsynced_.use_listener(listener); }

  // Takes the descriptor of `object`, and the room that its sender reserved. Returns false when it
  // is not a writable descriptor of that very file.
  bool insert(ObjectIndex object, UniqueFd fd, FileRoom room, std::uint32_t run);
  // By a successor: a descriptor of the dead service, which may be of no object at all. Data that
  // was stored through it is not durable for certain. Returns whether it is kept.
  bool adopt(UniqueFd fd, FileRoom room);
  // The same of one that was open for reading, perhaps for an fsync that is still owed.
  void adopt_stored(const UniqueFd& fd) { unsynced_.adopt(fd); }
  // And then: objects that have no descriptor here are handed over anew.
  void forget_missing();
  // Null when there is none.
  StoreFilePtr find(ObjectIndex object) const;
  std::vector<StoreFilePtr> snapshot() const;
  // The file may be closed. Returns: empty when no path is known here.
  std::string path_of(ObjectIndex object) const;
  std::size_t count() const;

  // Drops the descriptor if invariant 2 allows it. Returns whether it did.
  bool drop_if_idle(const StoreFilePtr& file);
  // The same though programs read it, for one who asks the kernel for what it refuses while anybody
  // has the file open for writing: to run it, to lease it.
  bool drop_if_only_read(const StoreFilePtr& file);
  // drop_if_idle() for all; called when room is short, after deaths and drains. Returns how many
  // were dropped.
  std::size_t drop_idle();

  // Makes everything durable that was stored since the last call. Returns 0 or the first errno,
  // also of what was lost before, and of an fsync of another caller that has failed meanwhile.
  int make_durable();
  // Whether what turns dirty of the file again can be stored: its descriptor is here, or could be
  // opened anew. `other`: some descriptor of the file, or -1.
  bool readmit(const ClosedFile& file, int other);
  // Closed files whose fsync is owed.
  UnsyncedFiles& unsynced() { return unsynced_; }
  const UnsyncedFiles& unsynced() const { return unsynced_; }

 private:
  bool drop_unless(const StoreFilePtr& file, bool (*is_needed)(const Object&));
  const NodeMemory& memory_;
  UnsyncedFiles unsynced_;
  std::mutex durable_mutex_;  // one make_durable() at a time; taken before the files' own
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, StoreFilePtr> files_;
};

// The same file through a description of our own, for writing: locks of the one that a client lent
// do not live on here. `fd` itself where the file's mode forbids that.
UniqueFd with_own_description(UniqueFd fd);
// After an error that a new descriptor might not meet (a server that has forgotten this one, a file
// system that was gone and is back): opens the file by its name again, under the same number.
// Returns whether the name leads to that very file; else nothing has changed. May wait for the
// store.
bool renew_descriptor(const StoreFile& file, const ObjectKey& key);

}  // namespace cairn::node
