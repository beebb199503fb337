// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/datatype_contents.h"

#include <stdlib.h>

#include "base/check.h"

namespace cairn {

DatatypeContents::DatatypeContents(const MpiLibrary& mpi, MpiHandle type) : mpi_(mpi) {
  if (mpi.type_get_envelope(type, &integers_, &addresses_, &types_, &combiner_) != 0) return;
  combiner_ -= mpi.first_combiner;
  if (is_basic()) {
    integers_ = types_ = 0;
    is_read_ = true;
    return;
  }
  const auto words = static_cast<std::size_t>(addresses_) + static_cast<std::size_t>(types_) +
                     static_cast<std::size_t>(integers_);
  memory_ = static_cast<long*>(calloc(words + 1, sizeof(long)));
  if (memory_ == nullptr) return;
  is_read_ = mpi.type_get_contents(type, integers_, addresses_, types_,
                                   reinterpret_cast<int*>(memory_ + addresses_ + types_), memory_,
                                   memory_ + addresses_) == 0;
}

DatatypeContents::~DatatypeContents() {
  for (int index = 0; is_read_ && index < types_; ++index) {
    MpiHandle inner = type(index);
    int counts[3] = {};
    int combiner = 0;
    if (mpi_.type_get_envelope(inner, &counts[0], &counts[1], &counts[2], &combiner) != 0) continue;
    const auto made = static_cast<Combiner>(combiner - mpi_.first_combiner);
    const bool is_made = made != Combiner::kNamed && made != Combiner::kFortranReal &&
                         made != Combiner::kFortranComplex && made != Combiner::kFortranInteger;
    if (is_made) (void)mpi_.type_free(&inner);
  }
  free(memory_);
}

bool DatatypeContents::is_basic() const {
  const Combiner made = combiner();
  return made == Combiner::kNamed || made == Combiner::kFortranReal ||
         made == Combiner::kFortranComplex || made == Combiner::kFortranInteger;
}

int DatatypeContents::integer(int index) const {
  CAIRN_CHECK(index >= 0 && index < integers_);
  return reinterpret_cast<const int*>(memory_ + addresses_ + types_)[index];
}

MpiHandle DatatypeContents::type(int index) const {
  CAIRN_CHECK(index >= 0 && index < types_);
  return mpi_.element(memory_ + addresses_, index);
}

}  // namespace cairn
