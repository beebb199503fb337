// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/datatype_contents.h"

#include <stdlib.h>

#include "base/check.h"

namespace cairn {

DatatypeContents::DatatypeContents(const MpiLibrary& mpi, MpiHandle type) : mpi_(mpi) {
  if (!look_at(mpi, type, &envelope_)) return;
  if (is_basic()) {
    envelope_.integers = envelope_.addresses = envelope_.large_counts = envelope_.types = 0;
    is_read_ = true;
    return;
  }
  const long words =
      envelope_.addresses + envelope_.large_counts + envelope_.types + envelope_.integers;
  memory_ = static_cast<long*>(calloc(static_cast<std::size_t>(words) + 1, sizeof(long)));
  is_read_ = memory_ != nullptr && read(type);
}

bool DatatypeContents::read(MpiHandle type) {
  const Envelope& here = envelope_;
  if (mpi_.type_get_contents_c != nullptr) {
    return mpi_.type_get_contents_c(type, here.integers, here.addresses, here.large_counts,
                                    here.types, integers(), memory_, large_counts(), types()) == 0;
  }
  return mpi_.type_get_contents(type, static_cast<int>(here.integers),
                                static_cast<int>(here.addresses), static_cast<int>(here.types),
                                integers(), memory_, types()) == 0;
}

DatatypeContents::~DatatypeContents() {
  for (long index = 0; is_read_ && index < envelope_.types; ++index) {
    MpiHandle inner = type(index);
    Envelope of_inner;
    if (look_at(mpi_, inner, &of_inner) && !is_basic(of_inner)) (void)mpi_.type_free(&inner);
  }
  free(memory_);
}

bool DatatypeContents::look_at(const MpiLibrary& mpi, MpiHandle type, Envelope* envelope) {
  if (mpi.type_get_envelope_c != nullptr && mpi.type_get_contents_c != nullptr) {
    const int result =
        mpi.type_get_envelope_c(type, &envelope->integers, &envelope->addresses,
                                &envelope->large_counts, &envelope->types, &envelope->combiner);
    envelope->combiner -= mpi.first_combiner;
    return result == 0;
  }
  int counts[3] = {};
  const int result =
      mpi.type_get_envelope(type, &counts[0], &counts[1], &counts[2], &envelope->combiner);
  envelope->integers = counts[0];
  envelope->addresses = counts[1];
  envelope->types = counts[2];
  envelope->combiner -= mpi.first_combiner;
  return result == 0;
}

bool DatatypeContents::is_basic(const Envelope& envelope) {
  const auto made = static_cast<Combiner>(envelope.combiner);
  return made == Combiner::kNamed || made == Combiner::kFortranReal ||
         made == Combiner::kFortranComplex || made == Combiner::kFortranInteger;
}

bool DatatypeContents::is_basic() const { return is_basic(envelope_); }

long DatatypeContents::number(long index) const {
  CAIRN_CHECK(index >= 0 && index < number_count());
  if (envelope_.large_counts == 0) return integers()[index];
  if (envelope_.integers == 0) return large_counts()[index];
  // A box with large counts: how many dimensions, the counts, the order.
  if (index == 0) return integers()[0];
  return index <= envelope_.large_counts ? large_counts()[index - 1]
                                         : integers()[index - envelope_.large_counts];
}

MpiHandle DatatypeContents::type(long index) const {
  CAIRN_CHECK(index >= 0 && index < envelope_.types);
  return mpi_.element(types(), index);
}

}  // namespace cairn
