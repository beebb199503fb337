// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/plain_transfer.h"

#include <array>
#include <cstddef>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

// What HDF5 writes into the program's list at a read, by H5Dpublic.h and H5Dprivate.h: how it went.
constexpr const char* kAnswers[] = {"actual_chunk_opt_mode",     "actual_io_mode",
                                    "local_no_collective_cause", "global_no_collective_cause",
                                    "no_selection_io_cause",     "actual_selection_io_mode"};

bool forget_answer(const Hdf5Functions& call, hid_t list, hid_t plain, const char* name) {
  if (call.H5Pexist(list, name) <= 0 || call.H5Pexist(plain, name) <= 0) return true;
  alignas(std::max_align_t) std::array<std::byte, 16> value{};
  std::size_t bytes = 0;
  return call.H5Pget_size(plain, name, &bytes) >= 0 && bytes <= value.size() &&
         call.H5Pget(plain, name, value.data()) >= 0 && call.H5Pset(list, name, value.data()) >= 0;
}

// A copy of the list, as the program would have it before the first read.
hid_t as_new(const Library& library, hid_t transfer, hid_t plain) {
  const hid_t list = library.call.H5Pcopy(transfer);
  if (list < 0) return list;
  bool is_good = true;
  for (const char* name : kAnswers)
    is_good = is_good && forget_answer(library.call, list, plain, name);
  if (is_good) return list;
  library.call.H5Pclose(list);
  return H5I_INVALID_HID;
}

bool is_as_new_plain(const Library& library, hid_t transfer, bool may_be_collective) {
  const hid_t plain = *library.default_transfer;
  const KeptErrors kept(library.call);
  const hid_t list = as_new(library, transfer, plain);
  if (list < 0) return false;
  CAIRN_DCHECK(list != transfer);
  const bool is_equal = (!may_be_collective || library.parallel.H5Pset_dxpl_mpio(
                                                   list, ParallelFunctions::kIndependent) >= 0) &&
                        library.call.H5Pequal(list, plain) > 0;
  library.call.H5Pclose(list);
  return is_equal;
}

}  // namespace

bool is_plain(const Library& library, hid_t transfer) {
  if (transfer == H5P_DEFAULT || library.default_transfer == nullptr)
    return transfer == H5P_DEFAULT;
  return transfer == *library.default_transfer ||
         library.call.H5Pequal(transfer, *library.default_transfer) > 0 ||
         is_as_new_plain(library, transfer, false);
}

bool is_plain_but_collective(const Library& library, hid_t transfer) {
  CAIRN_DCHECK(library.is_parallel);
  return library.default_transfer != nullptr && is_as_new_plain(library, transfer, true);
}

}  // namespace cairn::hdf5
