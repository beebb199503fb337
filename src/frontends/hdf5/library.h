// SPDX-License-Identifier: Apache-2.0
// The HDF5 libraries of this process that have loaded the connector, each in a slot.
//
// A callback of HDF5 does not say which library calls it. So each library is given callbacks of its
// own: the slot's number is a template argument of those that have no object to ask (connector.h),
// and an object knows its library (object.h).
//
// Thread safety: claim_slot() any thread; a library that has a slot keeps it and does not change.
// Lifetime: slots are constant-initialised and never destroyed, because HDF5 calls from its exit
// handler, when the destructors of this library have run.
#pragma once

#include <limits.h>

#include "frontends/hdf5/hdf5_functions.h"

namespace cairn::hdf5 {

// h5py, netCDF4, PyTables and one more.
inline constexpr int kLibrariesMax = 4;

struct OpenFile;

// Functions that only an HDF5 has that was built for MPI, all or none; handles of MPI are written
// where the arguments point.
// NOLINTBEGIN(readability-identifier-naming): HDF5's names.
struct ParallelFunctions {
  // H5FD_mpio_xfer_t, which the headers of an HDF5 without MPI leave out.
  static constexpr int kIndependent = 0;
  static constexpr int kCollective = 1;

  herr_t (*H5Pget_fapl_mpio)(hid_t, void* ranks, void* info);
  herr_t (*H5Pget_all_coll_metadata_ops)(hid_t, bool*);
  herr_t (*H5Pget_dxpl_mpio)(hid_t, int* mode);
  herr_t (*H5Pset_dxpl_mpio)(hid_t, int mode);
  // One pair is there: that of HDF5 1.14, or that of 2.x.
  herr_t (*H5VLstart_lib_state)();
  herr_t (*H5VLfinish_lib_state)();
  herr_t (*H5VLopen_lib_context)(void** context);
  herr_t (*H5VLclose_lib_context)(void* context);
  // The id of MPI's driver: by a call in HDF5 1.14, in a variable in 2.x.
  hid_t (*H5FD_mpio_init)();
  const hid_t* H5FD_MPIO_id_g;
};

// What HDF5 keeps for programs from before 1.8, unless its builder left that out: then null.
struct OldErrorFunctions {
  herr_t (*H5Eget_auto1)(H5E_auto1_t* print, void** data);
  herr_t (*H5Eset_auto1)(H5E_auto1_t print, void* data);
};
// NOLINTEND(readability-identifier-naming)

struct Library {
  Hdf5Functions call;
  // The class that this library was given; H5VL_GET_CONN_LVL_CURR asks for it.
  const H5VL_class_t* connector_class;
  // Built for MPI: reads may be collective, of which no process may stay away (ranks.h).
  bool is_parallel;
  ParallelFunctions parallel;
  OldErrorFunctions old_errors;
  // Those that the connector has open.
  OpenFile* files;
  // It has opened others by itself, behind links from file to file.
  bool has_hidden_files;
  // The id of the transfer properties that H5P_DEFAULT means; null where the library does not tell.
  const hid_t* default_transfer;
  // dlopen()'s handle, which is kept so that the library stays; the slot is free while it is null.
  void* handle;
  // A directory with filters that belongs to the library's own package, or empty. See
  // append_own_filters().
  char filters[PATH_MAX];
};

Library& library_in_slot(int slot);

// The slot of the library that an address lies in; it is given one if it has none. Returns: -1
// where no slot is free or the library lacks a function, with an error on the stack of the library.
int claim_slot(const void* address);

// Lets a library find the filters of its package again. netCDF4 points HDF5_PLUGIN_PATH at its
// filters only where the variable is unset. With the connector's directory in it, zstd, blosc and
// bzip2 would be lost. Once per library, before the first file.
void append_own_filters(Library& library);

// A connector that is loaded needs its directory no more. Where the program has not named it, but
// `cairn run` has (frontends/regions), the program is not to find it among its own.
void leave_search_path(Library& library);

}  // namespace cairn::hdf5
