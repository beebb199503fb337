// SPDX-License-Identifier: Apache-2.0
// How an MPI datatype was made: the arguments of the call, as MPI_Type_get_contents() tells them.
//
// Thread safety: none of its own; each object belongs to one thread. Ownership: the datatypes
// inside are freed with the object, except those that come with MPI.
#pragma once

#include "frontends/mpi/mpi_library.h"

namespace cairn {

// MPI 4.0, 5.1.13, in the order in which both families number them.
enum class Combiner {
  kNamed,
  kDup,
  kContiguous,
  kVector,
  kHvectorInteger,
  kHvector,
  kIndexed,
  kHindexedInteger,
  kHindexed,
  kIndexedBlock,
  kStructInteger,
  kStruct,
  kSubarray,
  kDarray,
  kFortranReal,
  kFortranComplex,
  kFortranInteger,
  kResized,
  kHindexedBlock,
};

class DatatypeContents {
 public:
  DatatypeContents(const MpiLibrary& mpi, MpiHandle type);
  ~DatatypeContents();
  DatatypeContents(const DatatypeContents&) = delete;
  DatatypeContents& operator=(const DatatypeContents&) = delete;

  // False where MPI or the memory fails. The rest is only there where it is true.
  bool is_read() const { return is_read_; }
  bool is_basic() const;
  Combiner combiner() const { return static_cast<Combiner>(combiner_); }
  int integer_count() const { return integers_; }
  int type_count() const { return types_; }
  // Requires: index < integer_count().
  int integer(int index) const;
  MpiHandle type(int index) const;

 private:
  const MpiLibrary& mpi_;
  int integers_ = 0;
  int addresses_ = 0;
  int types_ = 0;
  int combiner_ = 0;
  bool is_read_ = false;
  long* memory_ = nullptr;  // addresses, handles, integers
};

}  // namespace cairn
