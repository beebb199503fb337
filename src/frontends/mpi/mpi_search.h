// SPDX-License-Identifier: Apache-2.0
// Where the hooks find the MPI that a program has called.
//
// Thread safety: any thread.
#pragma once

#include "frontends/mpi_interface/mpi_library.h"

namespace cairn {

// The MPI behind the hook that the code at `caller` has called, found when the process first opens
// a file; null for an MPI that is not known, or wraps another one.
const MpiLibrary* mpi_behind(const void* caller);

// The definition of an MPI function behind ours: that of a profiling tool, or the MPI's own. The
// MPI of a Python module is not among the libraries that all see, so its caller's are searched. A
// call in tail position seems to come from somewhere else: then the process's MPI is taken.
void* next_mpi_function(const char* name, const void* caller);

}  // namespace cairn
