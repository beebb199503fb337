// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/hdf5_functions.h"

#include <dlfcn.h>

#include "base/check.h"

namespace cairn::hdf5 {

// The class struct is passed to libraries of several versions, and has this layout in all of them.
static_assert(H5VL_VERSION == 3, "HDF5 1.14 and 2.x have version 3 of the class of a connector");
static_assert(sizeof(hid_t) == 8 && sizeof(herr_t) == 4);

const char* find_functions(void* library, Hdf5Functions& functions) {
  CAIRN_DCHECK(library != nullptr);
#define CAIRN_HDF5_FIND(name)                                                         \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (functions.name == nullptr) return #name;
  CAIRN_HDF5_FUNCTIONS(CAIRN_HDF5_FIND)
#undef CAIRN_HDF5_FIND
  return nullptr;
}

}  // namespace cairn::hdf5
