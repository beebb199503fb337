// SPDX-License-Identifier: Apache-2.0
// How long the pieces are in which a view of a file lies there.
//
// Thread safety: any thread.
#pragma once

#include "frontends/mpi_interface/mpi_library.h"

namespace cairn {

// The bytes of a datatype divided by the runs in which they lie: 47008 for a vector of such records
// with gaps between them. 0 where nobody can tell (distributed arrays, types of later MPIs).
long mean_run_bytes(const MpiLibrary& mpi, MpiHandle type);

}  // namespace cairn
