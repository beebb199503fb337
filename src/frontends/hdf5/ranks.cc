// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/ranks.h"

#include <dlfcn.h>

#include <utility>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"
#include "frontends/mpi_interface/ranks_of_node.h"

namespace cairn::hdf5 {
namespace {

// The MPI that the library needs; null where it is not known.
const MpiLibrary* mpi_of(const Library& library) {
  static constinit MpiLibrary mpi{};
  static const Library* looked_up = nullptr;
  static bool is_known = false;
  // A process has one MPI. HDF5 calls from one thread at a time.
  if (looked_up == nullptr) {
    looked_up = &library;
    const void* function = dlsym(library.handle, "PMPI_Allreduce");
    is_known = function != nullptr && mpi.find_with(function);
  }
  return is_known && looked_up == &library ? &mpi : nullptr;
}

}  // namespace

Ranks::Ranks(const Library& library, hid_t access) {
  if (!library.is_parallel) return;
  if (library.parallel.H5Pget_fapl_mpio == nullptr) {
    are_there_ = true;  // nobody can tell
    return;
  }
  const KeptErrors kept(library.call);
  const ParallelFunctions& call = library.parallel;
  const hid_t by_mpi =
      call.H5FD_MPIO_id_g != nullptr ? *call.H5FD_MPIO_id_g : call.H5FD_mpio_init();
  if (by_mpi < 0 || library.call.H5Pget_driver(access) != by_mpi) return;
  are_there_ = true;
  // Where metadata is read by all together, HDF5 waits for each rank also in what one asks alone.
  bool is_all_together = false;
  const MpiLibrary* mpi = mpi_of(library);
  if (mpi == nullptr || !may_ranks_agree() ||
      call.H5Pget_all_coll_metadata_ops(access, &is_all_together) < 0 || is_all_together)
    return;
  MpiHandle info = mpi->no_info;
  if (call.H5Pget_fapl_mpio(access, &ranks_, &info) < 0) return;
  mpi_ = mpi;
  if (mpi->value_of(info) != mpi->no_info) (void)mpi->info_free(&info);
  if (!are_on_this_node(*mpi, ranks_)) leave();
}

Ranks::Ranks(Ranks&& other) noexcept
    : mpi_(std::exchange(other.mpi_, nullptr)),
      ranks_(std::exchange(other.ranks_, 0)),
      are_there_(other.are_there_) {}

Ranks& Ranks::operator=(Ranks&& other) noexcept {
  std::swap(mpi_, other.mpi_);
  std::swap(ranks_, other.ranks_);
  std::swap(are_there_, other.are_there_);
  return *this;
}

bool Ranks::all_have_theirs(bool has_own) const {
  CAIRN_DCHECK(can_vote());
  const long own = has_own ? 1 : 0;
  long all = 0;
  const int error = mpi_->allreduce(&own, &all, 1, mpi_->long_type, mpi_->minimum, ranks_);
  return error == 0 && all == 1;
}

void Ranks::leave() {
  const MpiLibrary* const mpi = std::exchange(mpi_, nullptr);
  if (mpi == nullptr) return;
  // HDF5 closes what a program has left open at its exit.
  int is_over = 0;
  if (mpi->finalized(&is_over) == 0 && is_over == 0) (void)mpi->comm_free(&ranks_);
}

bool is_collective(const Library& library, hid_t transfer) {
  CAIRN_DCHECK(library.parallel.H5Pget_dxpl_mpio != nullptr);
  if (transfer == H5P_DEFAULT) return false;
  const KeptErrors kept(library.call);
  int mode = ParallelFunctions::kIndependent;
  return library.parallel.H5Pget_dxpl_mpio(transfer, &mode) >= 0 &&
         mode == ParallelFunctions::kCollective;
}

CallOfItsOwn::CallOfItsOwn(const ParallelFunctions& call) : call_(call) {
  has_begun_ = (call_.H5VLopen_lib_context != nullptr ? call_.H5VLopen_lib_context(&context_)
                                                      : call_.H5VLstart_lib_state()) >= 0;
}

CallOfItsOwn::~CallOfItsOwn() {
  if (!has_begun_) return;
  if (call_.H5VLopen_lib_context != nullptr) {
    call_.H5VLclose_lib_context(context_);
  } else {
    call_.H5VLfinish_lib_state();
  }
}

}  // namespace cairn::hdf5
