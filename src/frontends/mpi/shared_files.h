// SPDX-License-Identifier: Apache-2.0
// Files of MPI whose ranks all write into the same node's memory: which they are, and how they are
// accessed there.
//
// An MPI gathers the pieces of its ranks and lets few of them write, because many small accesses
// cost a parallel file system much. Where each rank has the file's buffers in its own address
// space, gathering costs more than it saves: each rank accesses its pieces itself, if they are not
// tiny.
//
// All ranks of a file must come to the same result, or some would wait for the others for ever. It
// rests on what is the same for all: the variables of the launcher and of the run, the file's name,
// the hints that MPI wants to be the same, and a minimum that the ranks agree on. What may be
// different for each rank counts for nothing: whether it is attached, what exists by now.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

#include "frontends/mpi/mpi_library.h"

namespace cairn {

struct SharedFile {
  std::atomic<MpiHandle> file{0};
  MpiHandle ranks = 0;  // a communicator of our own, made when the first view is set
  // Each rank accesses its pieces itself.
  std::atomic<bool> is_direct{false};
};

class SharedFiles {
 public:
  // Whether a file that is opened by this name with the program's hints is to become ours.
  static bool are_wanted(const MpiLibrary& mpi, MpiHandle hints, const char* name);
  // A file that was to become ours is open: it does, if all its ranks are on this node. Talks to
  // nobody: a rank of which the open has failed is not here.
  static void opened(const MpiLibrary& mpi, MpiHandle file);
  static SharedFile* find(MpiHandle file);
  // Before the file is closed. Returns its communicator, for the caller to free when it is, or 0.
  static MpiHandle forget(MpiHandle file);
};

// The least of the numbers of all ranks; called by all. A number below 0 when MPI fails.
long least_of_ranks(const MpiLibrary& mpi, SharedFile* file, long mine);

// Whether the program says itself how its ranks are to work together. MPI wants these hints to be
// the same for all ranks.
bool has_collective_hints(const MpiLibrary& mpi, MpiHandle hints);

// The program's hints for a view, and ours: a copy, for the caller to free. Those that the program
// has set stay.
MpiHandle hints_of_view(const MpiLibrary& mpi, MpiHandle hints, bool is_direct);

}  // namespace cairn
