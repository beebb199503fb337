// SPDX-License-Identifier: Apache-2.0
// For calls that may fail where nothing is wrong.
//
// Thread safety: each thread has a stack of its own.
#pragma once

#include "frontends/hdf5/kept_errors.h"
#include "frontends/hdf5/library.h"

namespace cairn::hdf5 {

// Keeps the stack of errors, as KeptErrors does, and HDF5 does not print those of the scope either.
class SilentErrors {
 public:
  explicit SilentErrors(const Library& library) : library_(library), kept_(library.call) {
    unsigned is_new = 1;
    const bool is_known = library.call.H5Eauto_is_v2(H5E_DEFAULT, &is_new) >= 0;
    // The program may print by a function of the old kind, which the new calls fail for.
    if (is_known && is_new != 0) {
      is_changed_ = library.call.H5Eget_auto2(H5E_DEFAULT, &print_, &data_) >= 0 &&
                    library.call.H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
    } else if (is_known && library.old_errors.H5Eset_auto1 != nullptr) {
      is_changed_old_ = library.old_errors.H5Eget_auto1(&old_print_, &data_) >= 0 &&
                        library.old_errors.H5Eset_auto1(nullptr, nullptr) >= 0;
    }
  }
  ~SilentErrors() {
    if (is_changed_) library_.call.H5Eset_auto2(H5E_DEFAULT, print_, data_);
    if (is_changed_old_) library_.old_errors.H5Eset_auto1(old_print_, data_);
  }
  SilentErrors(const SilentErrors&) = delete;
  SilentErrors& operator=(const SilentErrors&) = delete;

 private:
  const Library& library_;
  const KeptErrors kept_;
  H5E_auto2_t print_ = nullptr;
  H5E_auto1_t old_print_ = nullptr;
  void* data_ = nullptr;
  bool is_changed_ = false;
  bool is_changed_old_ = false;
};

}  // namespace cairn::hdf5
