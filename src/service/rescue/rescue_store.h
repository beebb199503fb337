// SPDX-License-Identifier: Apache-2.0
// What is left dirty of files, put in its place through the descriptors that dead services have
// left. One thread, no queue and no retries: what is refused is for the rescue directory
// (service/rescue/rescue_directory.h).
//
// Clients may be at work: they write through by then (service/write_back/detachment.h).
//
// Thread safety: one thread. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/tiers/actor.h"
#include "service/keeping/kept_life.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct UnrescuedFile {
  ObjectIndex object = ObjectIndex::kNone;
  int error = 0;                 // errno; 0: there is no descriptor of the file
  bool is_rest_durable = false;  // what is not dirty of it is safe in the store
};

class RescueStore {
 public:
  // `life` says at each instant which object is being worked on; one that has been the death of a
  // rescue (`fatal`) is not touched again.
  RescueStore(const NodeMemory& memory, StoreFiles& files, Owner self, KeptLife& life,
              ObjectIndex fatal);

  // Stores all that is dirty; what could not be is in unstored().
  void store_all();
  // Makes durable what was stored, by an fsync of each file, also of those in unstored(). What the
  // store then gives up is dirty again and there, too.
  void make_durable();

  const std::vector<UnrescuedFile>& unstored() const { return unstored_; }
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::size_t stored_files() const { return stored_files_; }

 private:
  bool is_owed(ObjectIndex index) const;
  int store(ObjectIndex index, StoreFile& file);
  void note_sync(ObjectIndex index, int error);

  const NodeMemory& memory_;
  StoreFiles& files_;
  KeptLife& life_;
  const ObjectIndex fatal_;
  Actor actor_;
  std::vector<UnrescuedFile> unstored_;
  std::uint64_t stored_bytes_ = 0;
  std::size_t stored_files_ = 0;
};

// A step of a rescue that does not end within this ends the rescue (SIGALRM), and the next one goes
// around it: a store that hangs, a lock that nobody gives back. The keeper itself, where it has no
// process for a rescue, ignores that.
void bound_step(std::uint64_t bytes);

}  // namespace cairn::node
