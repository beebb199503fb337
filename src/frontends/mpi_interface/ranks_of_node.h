// SPDX-License-Identifier: Apache-2.0
// Which ranks may be asked to agree on something: a rank that nobody has told would be waited for
// without end.
//
// Thread safety: any thread.
#pragma once

#include "base/check.h"
#include "frontends/mpi_interface/mpi_library.h"

namespace cairn {

// A group of MPI, given back at the end.
class MpiGroup {
 public:
  explicit MpiGroup(const MpiLibrary& mpi) : mpi_(mpi) {}
  ~MpiGroup() {
    if (is_there_) (void)mpi_.group_free(&handle_);
  }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  bool take(int (*give)(MpiHandle, MpiHandle*), MpiHandle owner) {
    is_there_ = give(owner, &handle_) == 0;
    return is_there_;
  }
  MpiHandle handle() const {
    CAIRN_DCHECK(is_there_);
    return handle_;
  }
  int size() const {
    int count = 0;
    return mpi_.group_size(handle_, &count) == 0 ? count : 0;
  }

 private:
  const MpiLibrary& mpi_;
  MpiHandle handle_ = 0;
  bool is_there_ = false;
};

// The user has not set CAIRN_MPI=off, for a program of which some ranks are outside the run.
bool may_ranks_agree();
// Whether the ranks of a communicator are one program's, and that program's ranks are all on this
// node: then a run of the program is a run of each of them.
bool are_on_this_node(const MpiLibrary& mpi, MpiHandle ranks);

}  // namespace cairn
