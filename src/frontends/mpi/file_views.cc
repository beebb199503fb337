// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/file_views.h"

#include "frontends/mpi/datatype_contents.h"

namespace cairn {
namespace {

constexpr long kUnknownRuns = 0;
constexpr int kDepthMax = 16;

// The runs of an inner type, and whether many of them in a row are one.
struct Inner {
  long runs = kUnknownRuns;
  bool is_dense = false;

  // So many of them beside each other.
  long repeated(long count) const { return is_dense ? 1 : count * runs; }
};

long runs_of(const MpiLibrary& mpi, MpiHandle type, int depth);

Inner look_at(const MpiLibrary& mpi, MpiHandle type, int depth) {
  long size = 0;
  long first = 0;
  long extent = 0;
  const long runs = runs_of(mpi, type, depth + 1);
  const bool is_sized =
      mpi.type_size(type, &size) == 0 && mpi.type_get_extent(type, &first, &extent) == 0;
  return {runs, is_sized && runs == 1 && size == extent};
}

// Blocks of the lengths that start at integer `first`.
long runs_of_blocks(const DatatypeContents& made, const Inner& inner, long count) {
  long runs = 0;
  for (long index = 0; index < count && 1 + index < made.number_count(); ++index)
    runs += made.number(1 + index) > 0 ? inner.repeated(made.number(1 + index)) : 0;
  return runs;
}

// Dimensions that are taken whole and vary fastest make one run with the next one.
long runs_of_subarray(const MpiLibrary& mpi, const DatatypeContents& made, const Inner& inner) {
  const long dimensions = made.number(0);
  if (made.number_count() != 3 * dimensions + 2) return kUnknownRuns;
  const bool is_in_c_order = made.number(3 * dimensions + 1) == mpi.order_c;
  bool is_one_run = inner.is_dense;
  long runs = inner.is_dense ? 1 : inner.runs;
  for (long step = 0; step < dimensions; ++step) {
    const long at = is_in_c_order ? dimensions - 1 - step : step;
    const long size = made.number(1 + at);
    const long taken = made.number(1 + dimensions + at);
    if (!is_one_run) runs *= taken;
    is_one_run = is_one_run && taken == size;
  }
  return runs;
}

long runs_of_struct(const MpiLibrary& mpi, const DatatypeContents& made, int depth) {
  long runs = 0;
  for (long index = 0; index < made.type_count() && 1 + index < made.number_count(); ++index) {
    const Inner inner = look_at(mpi, made.type(index), depth);
    if (inner.runs == kUnknownRuns) return kUnknownRuns;
    runs += made.number(1 + index) > 0 ? inner.repeated(made.number(1 + index)) : 0;
  }
  return runs;
}

long runs_of(const MpiLibrary& mpi, MpiHandle type, int depth) {
  const DatatypeContents made(mpi, type);
  if (!made.is_read() || depth > kDepthMax) return kUnknownRuns;
  if (made.is_basic()) return 1;
  if (made.combiner() == Combiner::kStruct) return runs_of_struct(mpi, made, depth);
  if (made.type_count() != 1) return kUnknownRuns;
  const Inner inner = look_at(mpi, made.type(0), depth);
  if (inner.runs == kUnknownRuns) return kUnknownRuns;
  switch (made.combiner()) {
    case Combiner::kDup:
    case Combiner::kResized:
      return inner.runs;
    case Combiner::kContiguous:
      return inner.repeated(made.number(0));
    case Combiner::kVector:
    case Combiner::kHvector:
    case Combiner::kIndexedBlock:
    case Combiner::kHindexedBlock:
      return made.number(0) * inner.repeated(made.number(1));
    case Combiner::kIndexed:
    case Combiner::kHindexed:
      return runs_of_blocks(made, inner, made.number(0));
    case Combiner::kSubarray:
      return runs_of_subarray(mpi, made, inner);
    default:
      return kUnknownRuns;
  }
}

}  // namespace

long mean_run_bytes(const MpiLibrary& mpi, MpiHandle type) {
  if (mpi.value_of(type) == mpi.no_type) return 0;
  long size = 0;
  const long runs = runs_of(mpi, type, 0);
  if (runs <= 0 || mpi.type_size(type, &size) != 0 || size <= 0) return 0;
  return size / runs;
}

}  // namespace cairn
