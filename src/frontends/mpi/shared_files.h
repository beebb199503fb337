// SPDX-License-Identifier: Apache-2.0
// Files of MPI whose ranks all write into the same node's memory: which they are, and how they are
// accessed there.
//
// An MPI gathers the pieces of its ranks and lets few of them write, because many small accesses
// cost a parallel file system much. Where each rank has the file's buffers in its own address
// space, gathering costs more than it saves: each rank accesses its pieces itself, if they are not
// tiny.
//
// All ranks of a file must come to the same result, or some would wait for the others for ever.
// Whether they talk about a file at all rests on what is the same for all: the variables of the
// launcher and of the run, and the communicator that they open it with. The rest may be different
// for each rank (what a name leads to, how long its pieces are, a call that fails), and is decided
// by a minimum that the ranks agree on.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

#include "frontends/mpi/file_hints.h"
#include "frontends/mpi_interface/mpi_library.h"

namespace cairn {

struct SharedFile {
  std::atomic<MpiHandle> file{0};
  MpiHandle ranks = 0;  // a communicator of our own; 0 for a file of one rank
  // Each rank accesses its pieces itself.
  std::atomic<bool> is_direct{false};
  // The ranks have written collectively since they last waited for each other.
  std::atomic<bool> is_written{false};
  FileHints hints;
};

class SharedFiles {
 public:
  // Whether ranks that open a file with this communicator agree on whether it is ours. The same for
  // all of them.
  static bool are_possible(const MpiLibrary& mpi, MpiHandle ranks);
  // What a rank has done to open a file; `file` is 0 where that has failed.
  struct Opened {
    MpiHandle ranks;
    const char* name;
    MpiHandle hints;
    MpiHandle file;
  };
  // The file becomes ours if it is managed for all of its ranks. Called by all of them, where it is
  // possible.
  static void opened(const MpiLibrary& mpi, const Opened& opened);
  // Null for a file that is not ours, and for MPI_FILE_NULL.
  static SharedFile* find(MpiHandle file);
  // Before the file is closed. Returns its communicator, for the caller to free when it is, or 0.
  static MpiHandle forget(MpiHandle file);
};

// The least of the numbers of all ranks; called by all, and by none before the others are there. A
// number below 0 when MPI fails.
long least_of_ranks(const MpiLibrary& mpi, SharedFile* file, long mine);

}  // namespace cairn
