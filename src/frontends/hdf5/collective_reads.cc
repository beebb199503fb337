// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/collective_reads.h"

#include <array>

#include "base/check.h"
#include "frontends/hdf5/array.h"
#include "frontends/hdf5/kept_errors.h"
#include "frontends/hdf5/plain_transfer.h"
#include "frontends/hdf5/serve.h"

namespace cairn::hdf5 {
namespace {

// The program has selected nothing, which HDF5 calls taking part.
bool wants_nothing(const Hdf5Functions& call, const DatasetRead& read) {
  return read.file_space > H5S_PLIST && call.H5Sget_select_type(read.file_space) == H5S_SEL_NONE;
}

// Reads as a rank that is alone: it fetches what is missing without the others.
bool serve_alone(Dataset& dataset, DatasetRead read) {
  const Library& library = dataset.file->library;
  if (!is_plain_but_collective(library, read.transfer)) {
    note_unserved(&dataset, read.transfer);
    return false;
  }
  read.transfer = *library.default_transfer;
  read.is_apart = true;
  return serve(dataset, read);
}

}  // namespace

bool is_voted(const OpenFile& file, hid_t transfer) {
  return file.ranks.can_vote() && is_collective(file.library, transfer);
}

CollectiveRead::CollectiveRead(Dataset& dataset, const DatasetRead& read)
    : call_(dataset.file->library.call), below_(read) {
  const bool is_empty = wants_nothing(call_, read);
  // A rank that could not say below that it wants nothing has to be given its cells there.
  const bool has_own = is_empty || (serve_alone(dataset, read) && select_nothing(dataset));
  is_over_ = dataset.file->ranks.all_have_theirs(has_own);
}

CollectiveRead::~CollectiveRead() {
  if (nothing_ < 0) return;
  const KeptErrors kept(call_);
  call_.H5Sclose(nothing_);
}

bool CollectiveRead::select_nothing(const Dataset& dataset) {
  CAIRN_DCHECK(dataset.array != nullptr);
  const KeptErrors kept(call_);
  const arrays::Coordinates& shape = static_cast<Array*>(dataset.array)->shape();
  std::array<hsize_t, arrays::kDimensionsMax> numbers{};
  for (std::size_t at = 0; at < shape.size(); ++at) numbers[at] = shape[at];
  nothing_ = call_.H5Screate_simple(static_cast<int>(shape.size()), numbers.data(), nullptr);
  if (nothing_ < 0 || call_.H5Sselect_none(nothing_) < 0) return false;
  below_.memory_space = nothing_;
  below_.file_space = nothing_;
  return true;
}

}  // namespace cairn::hdf5
