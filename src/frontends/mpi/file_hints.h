// SPDX-License-Identifier: Apache-2.0
// The hints of an open file of MPI: those of the program, which stay, and those that we set.
//
// MPICH's MPI_File_get_info() tells what holds now, wherever it came from. Open MPI's tells only
// what the program has passed at open, so what the program passes is noted too.
//
// Thread safety: none of its own; used in calls that are collective over the file, one at a time.
#pragma once

#include "frontends/mpi_interface/mpi_library.h"

namespace cairn {

class FileHints {
 public:
  // The program passes these hints with a call.
  void note(const MpiLibrary& mpi, MpiHandle hints);
  // Looks at what holds for the open file now: what is not ROMIO's default is the program's.
  void look(const MpiLibrary& mpi, MpiHandle file);
  // Whether the program or its user says how the ranks are to work together.
  bool has_wishes() const;

  // Hints to pass in place of the program's: ours are added for a direct file, and those that we
  // set before are taken back for another one. A copy, for the caller to free; the same ones where
  // there is nothing to add.
  MpiHandle with_ours(const MpiLibrary& mpi, MpiHandle hints, bool is_direct) const;
  // They have been passed with success.
  void are_passed(const MpiLibrary& mpi, bool is_direct) { ours_ = is_direct ? ours_for(mpi) : 0; }

 private:
  // A bit for each of ROMIO's hints; the first ones are about collective access. Open MPI's ROMIO
  // hears of hints with a view only, too late where the ranks gather again: its collective calls
  // become independent ones instead.
  static constexpr unsigned kCollective = 0x3;
  static constexpr unsigned kSieving = 0xc;
  unsigned ours_for(const MpiLibrary& mpi) const {
    return (mpi.is_open_mpi ? kSieving : kCollective | kSieving) & ~programs_;
  }
  void belongs_to_program(unsigned key) {
    programs_ |= key;
    ours_ &= ~key;
  }

  unsigned programs_ = 0;
  unsigned ours_ = 0;
  bool has_wishes_ = false;
};

}  // namespace cairn
