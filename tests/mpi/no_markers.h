/* SPDX-License-Identifier: Apache-2.0 */
/* Some of ROMIO's programs mark the bounds of a datatype with MPI_LB and MPI_UB, which MPI 3.0 has
   removed. Here the same datatype is made without: the first and the last member say no more than
   where the bounds are. */
#pragma once

#include <mpi.h>

#ifdef OPEN_MPI
static int type_between_bounds(int count, int* lengths, MPI_Aint* places, MPI_Datatype* types,
                               MPI_Datatype* made) {
  if (types[0] != MPI_DATATYPE_NULL)
    return MPI_Type_create_struct(count, lengths, places, types, made);
  MPI_Datatype inner;
  MPI_Type_create_struct(count - 2, lengths + 1, places + 1, types + 1, &inner);
  return MPI_Type_create_resized(inner, places[0], places[count - 1] - places[0], made);
}

#undef MPI_LB
#undef MPI_UB
#define MPI_LB MPI_DATATYPE_NULL
#define MPI_UB MPI_DATATYPE_NULL
#define MPI_Type_create_struct type_between_bounds
#endif
