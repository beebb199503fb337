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
#include <functional>
#include <vector>

#include "memory/tiers/actor.h"
#include "service/keeping/kept_life.h"
#include "service/process/unique_fd.h"
#include "service/write_back/store_files.h"
#include "service/write_back/store_writer.h"

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

  // Files of which nobody has heard whether the dead service's last fsync has failed.
  bool has_unheard() const;
  // Makes dirty again what the store may not have kept: of the dead service's last fsync nobody has
  // heard (service/write_back/store_writer.h). While clients write into the tiers still.
  // `readable`: descriptors of closed files that it has left.
  void take_over(const std::vector<UniqueFd>& readable);
  // Stores all that is dirty; what could not be is in unstored().
  void store_all();
  // Makes durable what was stored, by an fsync of each file, also of those in unstored(). What the
  // store then gives up is dirty again and there, too.
  void make_durable();

  const std::vector<UnrescuedFile>& unstored() const { return unstored_; }
  // Files of which the store may have lost bytes that no tier has. They may be in unstored(), too.
  std::vector<ObjectIndex> lost() const;
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::size_t stored_files() const { return stored_files_; }

 private:
  bool is_owed(ObjectIndex index) const;
  bool is_in_trouble(ObjectIndex index) const;
  std::vector<ObjectIndex> in_trouble() const;
  void adopt_if_in_trouble(const UniqueFd& readable);
  // A rescue that dies of the work, or in it, is followed by one that leaves the object out.
  void at_work_on(ObjectIndex index, std::uint64_t bytes, const std::function<void()>& work);
  int store(ObjectIndex index, StoreFile& file);
  void note_sync(ObjectIndex index, int error);

  const NodeMemory& memory_;
  StoreFiles& files_;
  KeptLife& life_;
  const ObjectIndex fatal_;
  StoreWriter writer_;  // for what the store has failed to keep
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
