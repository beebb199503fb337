// SPDX-License-Identifier: Apache-2.0
// The private directories behind scratch: one for each directory that a run or the node named. A
// file that is made there has its name here, its bytes in the tiers, and nothing on the backing
// store. Programs see them through a mount of their own (the launcher's doing).
//
// Lifetime: those of a run end with the run, those of the node with the node; then their names and
// their blocks are gone.
//
// Thread safety: all functions from any thread. Ownership: owns the directories below
// NODE_DIRECTORY/scratch.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_rule.h"
#include "base/status.h"
#include "memory/tiers/actor.h"
#include "memory/tiers/node_memory.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

// The rule that makes everything below a directory scratch.
FileRule scratch_rule(const std::string& directory);

// Whether a scratch space begins empty, or with what a dead service has left, until restore().
enum class ScratchBegin : std::uint8_t { kEmpty, kAsLeft };

class ScratchSpace {
 public:
  ScratchSpace(const NodeMemory& memory, Owner self, std::string directory,
               ScratchBegin begin = ScratchBegin::kEmpty);
  // Removes everything.
  ~ScratchSpace();
  ScratchSpace(const ScratchSpace&) = delete;
  ScratchSpace& operator=(const ScratchSpace&) = delete;

  struct Place {
    std::uint32_t run = 0;  // 0: the node's
    std::string target;     // what the program calls it
    std::string source;     // where it is
  };
  // Makes the private directory for `target`, unless the node or the run has it already.
  Result<Place> add(std::uint32_t run, const std::string& target);
  struct Snapshot {
    unsigned made = 0;
    std::vector<Place> places;
  };
  Snapshot snapshot() const;
  // Takes over the places of a dead service, whose directories are there: makes none, and removes
  // those that no place names, with the blocks of the files in them. Requires: there is no place
  // yet, and the shared memory has been put right.
  // Errors: kInvalid, naming what is wrong; then nothing has changed.
  Status restore(const Snapshot& kept);
  // What a run sees: the node's and its own.
  std::vector<Place> places_of(std::uint32_t run) const;
  // The run has ended: what was its own is dropped. Blocks of files that somebody still has open
  // leave with the last close.
  void end_run(std::uint32_t run);
  // Scratch files that are not below one of the directories, because a rule named them by pattern:
  // their names are on the backing store, and go when the node ends.
  void forget_strays(const StoreFiles& files) const;

  // The path of an open file. Through the mount of a program the kernel knows it by the program's
  // name for it, and when the program is gone only below the mount's root. Empty when it has no
  // name any more.
  std::string path_of(int fd) const;
  // Drops a file that lies in a private directory or is scratch by a rule: the name, and with the
  // last one the blocks. False when there is no such name.
  bool forget_file(const std::string& path) const;

 private:
  void remove(const Place& place) const;
  Status check(const Snapshot& kept) const;

  const NodeMemory& memory_;
  const Owner self_;
  const std::string directory_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;
  unsigned made_ = 0;
};

}  // namespace cairn::node
