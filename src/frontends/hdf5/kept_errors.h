// SPDX-License-Identifier: Apache-2.0
// HDF5's stack of errors, kept while the connector calls functions of HDF5 on its own account.
//
// Every public function of HDF5 clears the stack. Without this, closing a property list after an
// open that failed would take the reason away, and h5py would raise OSError in the place of
// FileNotFoundError.
//
//   const KeptErrors kept(library.call);
//   library.call.H5Pclose(properties);
//
// Thread safety: each thread has a stack of its own.
#pragma once

#include "frontends/hdf5/hdf5_functions.h"

namespace cairn::hdf5 {

class KeptErrors {
 public:
  explicit KeptErrors(const Hdf5Functions& call)
      : call_(call), stack_(call.H5Eget_current_stack()) {}
  ~KeptErrors() {
    // Setting it closes the copy, too.
    if (stack_ >= 0) call_.H5Eset_current_stack(stack_);
  }
  KeptErrors(const KeptErrors&) = delete;
  KeptErrors& operator=(const KeptErrors&) = delete;

 private:
  const Hdf5Functions& call_;
  hid_t stack_;
};

}  // namespace cairn::hdf5
