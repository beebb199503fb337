// SPDX-License-Identifier: Apache-2.0
// How an MPI datatype was made: the arguments of the call, as MPI_Type_get_contents() tells them.
//
// Thread safety: none of its own; each object belongs to one thread. Ownership: the datatypes
// inside are freed with the object, except those that come with MPI.
#pragma once

#include "frontends/mpi_interface/mpi_library.h"

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
  Combiner combiner() const { return static_cast<Combiner>(envelope_.combiner); }
  // The integers of a call, or those of its large counts that stand in their places.
  long number_count() const { return envelope_.integers + envelope_.large_counts; }
  long type_count() const { return envelope_.types; }
  // Requires: index < number_count().
  long number(long index) const;
  MpiHandle type(long index) const;

 private:
  struct Envelope {
    long integers = 0;
    long addresses = 0;
    long large_counts = 0;
    long types = 0;
    int combiner = 0;
  };
  static bool look_at(const MpiLibrary& mpi, MpiHandle type, Envelope* envelope);
  static bool is_basic(const Envelope& envelope);
  bool read(MpiHandle type);

  long* large_counts() const { return memory_ + envelope_.addresses; }
  long* types() const { return large_counts() + envelope_.large_counts; }
  int* integers() const { return reinterpret_cast<int*>(types() + envelope_.types); }

  const MpiLibrary& mpi_;
  Envelope envelope_;
  bool is_read_ = false;
  long* memory_ = nullptr;
};

}  // namespace cairn
