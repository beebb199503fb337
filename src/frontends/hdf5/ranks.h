// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI program that have opened a file together.
//
// A collective read is answered by all ranks or by none: HDF5 waits for each of them. A rank that
// has its cells in the tiers cannot just stay away, because it does not know what the others have.
// So they vote, with one number each, and only if all have theirs nobody asks HDF5. Else those that
// have theirs take part with nothing selected (H5Dread(3) allows that).
//
// All ranks of a file vote, or none: what decides about it is the same for all (the MPI, the HDF5,
// how the file was opened, whether they are on one node). A rank whose HDF5 does not load the
// connector would be waited for without end; docs/mpi.md says so.
//
// Thread safety: as open_file.h. Ownership: holds a copy of the communicator.
#pragma once

#include "frontends/hdf5/library.h"
#include "frontends/mpi_interface/mpi_library.h"

namespace cairn::hdf5 {

class Ranks {
 public:
  Ranks() = default;
  // `access`: as the file is opened with. Collective over the ranks that open it.
  Ranks(const Library& library, hid_t access);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Ranks(Ranks&& other) noexcept;
  Ranks& operator=(Ranks&& other) noexcept;
  ~Ranks() { leave(); }

  // The file is opened by MPI.
  bool are_there() const { return are_there_; }
  // False where that MPI is not known, where ranks are on other nodes, and where HDF5 reads
  // metadata for all ranks together: then HDF5 is to answer every read.
  bool can_vote() const { return mpi_ != nullptr; }
  // Collective: whether each rank has its cells. Any failure of MPI is a no.
  bool all_have_theirs(bool has_own) const;

 private:
  void leave();

  const MpiLibrary* mpi_ = nullptr;
  MpiHandle ranks_ = 0;
  bool are_there_ = false;
};

bool is_collective(const Library& library, hid_t transfer);

// Calls of HDF5 in its scope are as those of another call of the program. HDF5 remembers for the
// length of a call whether its transfer is collective: what the connector reads by itself would
// make the program's own read one of this rank alone, for which the others would wait.
class CallOfItsOwn {
 public:
  explicit CallOfItsOwn(const ParallelFunctions& call);
  ~CallOfItsOwn();
  CallOfItsOwn(const CallOfItsOwn&) = delete;
  CallOfItsOwn& operator=(const CallOfItsOwn&) = delete;

  bool has_begun() const { return has_begun_; }

 private:
  const ParallelFunctions& call_;
  void* context_ = nullptr;
  bool has_begun_ = false;
};

}  // namespace cairn::hdf5
