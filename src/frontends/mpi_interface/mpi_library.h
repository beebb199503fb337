// SPDX-License-Identifier: Apache-2.0
// An MPI that a process has loaded: its functions and handles.
//
// No header of an MPI is needed, and no library. MPICH's handles are ints and Open MPI's are
// pointers; both are passed in a register, and a function that neither looks into them nor keeps
// them needs no more than their value. The binary interfaces are those of MPICH's ABI (MPICH, Intel
// MPI, MVAPICH; www.mpich.org/abi) and of Open MPI 4 and 5. Another MPI is left alone.
// tests/mpi/direct_access.cc holds the numbers below against the headers of the MPIs of the
// machine.
//
// Thread safety: constant once found.
#pragma once

#include <cstdint>

namespace cairn {

// The upper half of MPICH's ints is whatever the register held.
using MpiHandle = std::uintptr_t;

struct MpiLibrary {
  bool is_open_mpi;
  MpiHandle world;
  MpiHandle no_ranks;
  MpiHandle no_info;
  MpiHandle no_type;
  MpiHandle long_type;
  MpiHandle minimum;
  // MPICH counts the ways in which a datatype is made from 1, Open MPI from 0.
  int first_combiner;
  int order_c;  // MPI_ORDER_C

  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*comm_size)(MpiHandle, int*);
  int (*comm_test_inter)(MpiHandle, int*);
  int (*comm_create)(MpiHandle, MpiHandle, MpiHandle*);
  int (*comm_free)(MpiHandle*);
  int (*comm_group)(MpiHandle, MpiHandle*);
  int (*group_translate_ranks)(MpiHandle, int, const int*, MpiHandle, int*);
  int (*group_size)(MpiHandle, int*);
  int (*group_free)(MpiHandle*);
  int (*file_get_info)(MpiHandle, MpiHandle*);
  int (*allreduce)(const void*, void*, int, MpiHandle, MpiHandle, MpiHandle);
  int (*info_create)(MpiHandle*);
  int (*info_dup)(MpiHandle, MpiHandle*);
  int (*info_get)(MpiHandle, const char*, int, char*, int*);
  int (*info_set)(MpiHandle, const char*, const char*);
  int (*info_free)(MpiHandle*);
  int (*type_size)(MpiHandle, long*);
  int (*type_get_extent)(MpiHandle, long*, long*);
  int (*type_get_envelope)(MpiHandle, int*, int*, int*, int*);
  int (*type_get_contents)(MpiHandle, int, int, int, int*, long*, void*);
  int (*type_free)(MpiHandle*);
  // MPI 4 has them; null stands for none. Where they are, the ones above end a program that asks
  // about a type with large counts.
  int (*type_get_envelope_c)(MpiHandle, long*, long*, long*, long*, int*);
  int (*type_get_contents_c)(MpiHandle, long, long, long, long, int*, long*, long*, void*);

  bool is_no_info(MpiHandle info) const { return value_of(info) == no_info; }
  // What counts of a handle that has come in a register.
  MpiHandle value_of(MpiHandle handle) const {
    return is_open_mpi ? handle : static_cast<std::uint32_t>(handle);
  }
  // One of an array of handles that MPI has filled.
  MpiHandle element(const void* handles, long index) const {
    return is_open_mpi ? static_cast<const MpiHandle*>(handles)[index]
                       : static_cast<const std::uint32_t*>(handles)[index];
  }

  // Finds all of it in the library that has `function`, one of MPI's. Returns: false for an MPI
  // that is not known, or wraps another one.
  bool find_with(const void* function);
};

// The library that contains the code at `address`, without loading it; null where there is none.
void* library_with(const void* address);

}  // namespace cairn
