// SPDX-License-Identifier: Apache-2.0
// The calls of MPI's files that are not the same on memory that the ranks share.
//
// Both names of each call are hooks: Fortran's bindings call the second one. A profiling tool
// between the program and the MPI has the first one, and comes next.
#include "frontends/libc/hook.h"
#include "frontends/mpi/file_views.h"
#include "frontends/mpi/mpi_library.h"
#include "frontends/mpi/shared_files.h"

namespace cairn {
namespace {

// Shorter pieces cost a rank more calls than it saves: 4 KiB is copied in about the time that a
// call takes to find its block.
constexpr long kDirectBytes = 4096;
// MPI_ERR_INTERN of both: what can only happen when a library vanishes while it runs.
constexpr int kNoLibrary = 16;

struct Open {
  MpiHandle ranks;
  const char* name;
  int mode;
  MpiHandle hints;
  MpiHandle* file;
};

int open_file(const char* call, const void* caller, const Open& open) {
  using Function = int(MpiHandle, const char*, int, MpiHandle, MpiHandle*);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  const MpiLibrary* const mpi = MpiLibrary::behind(caller);
  const bool is_wanted = mpi != nullptr && SharedFiles::are_wanted(*mpi, open.hints, open.name);
  const int result = next(open.ranks, open.name, open.mode, open.hints, open.file);
  if (result == 0 && is_wanted && SharedFiles::find(*open.file) == nullptr)
    SharedFiles::opened(*mpi, *open.file);
  return result;
}

int close_file(const char* call, const void* caller, MpiHandle* file) {
  auto* const next = reinterpret_cast<int (*)(MpiHandle*)>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  MpiHandle ranks = file == nullptr ? 0 : SharedFiles::forget(*file);
  const int result = next(file);
  if (ranks != 0) (void)MpiLibrary::behind(caller)->comm_free(&ranks);
  return result;
}

struct View {
  MpiHandle file;
  long displacement;
  MpiHandle unit;
  MpiHandle type;
  const char* representation;
  MpiHandle hints;
};

// What all ranks of a file can do.
bool is_direct_for_all(const MpiLibrary& mpi, SharedFile* file, const View& view) {
  const long mine = has_collective_hints(mpi, view.hints) ? 0 : mean_run_bytes(mpi, view.type);
  return least_of_ranks(mpi, file, mine) >= kDirectBytes;
}

int set_view(const char* call, const void* caller, const View& view) {
  using Function = int(MpiHandle, long, MpiHandle, MpiHandle, const char*, MpiHandle);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  SharedFile* const file = SharedFiles::find(view.file);
  const auto pass_on = [&](MpiHandle hints) {
    return next(view.file, view.displacement, view.unit, view.type, view.representation, hints);
  };
  if (file == nullptr) return pass_on(view.hints);
  const MpiLibrary& mpi = *MpiLibrary::behind(caller);
  const bool is_direct = is_direct_for_all(mpi, file, view);
  MpiHandle hints = hints_of_view(mpi, view.hints, is_direct);
  const int result = pass_on(hints);
  if (hints != view.hints) (void)mpi.info_free(&hints);
  file->is_direct.store(is_direct && result == 0);
  return result;
}

// Open MPI knows no hint of which all its versions think the same. MPI lets a rank return from a
// collective access before the others have come, so that each may do its part alone.
const char* call_of(MpiHandle file, const void* caller, const char* collective, const char* alone) {
  const SharedFile* const known = SharedFiles::find(file);
  const bool is_alone =
      known != nullptr && known->is_direct.load() && MpiLibrary::behind(caller)->is_open_mpi;
  return is_alone ? alone : collective;
}

struct Transfer {
  MpiHandle file;
  const void* buffer;
  int count;
  MpiHandle type;
  void* status;
};

int transfer(const char* call, const void* caller, const Transfer& part) {
  using Function = int(MpiHandle, const void*, int, MpiHandle, void*);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  return next(part.file, part.buffer, part.count, part.type, part.status);
}

int transfer_at(const char* call, const void* caller, long offset, const Transfer& part) {
  using Function = int(MpiHandle, long, const void*, int, MpiHandle, void*);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  return next(part.file, offset, part.buffer, part.count, part.type, part.status);
}

// Here one rank changes the file for all, and Open MPI's preallocation writes again what it has
// read. Where the MPI gathers pieces, that rank has written them before; those that the ranks write
// themselves have to be there.
int change_size(const char* call, const void* caller, MpiHandle file, long size) {
  auto* const next = reinterpret_cast<int (*)(MpiHandle, long)>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  SharedFile* const known = SharedFiles::find(file);
  if (known != nullptr && known->is_direct.load())
    (void)least_of_ranks(*MpiLibrary::behind(caller), known, 0);
  return next(file, size);
}

}  // namespace
}  // namespace cairn

using cairn::MpiHandle;

#define CAIRN_MPI_OPEN(symbol)                                                                  \
  CAIRN_HOOK(int, symbol,                                                                       \
             (MpiHandle ranks, const char* name, int mode, MpiHandle hints, MpiHandle* file)) { \
    return cairn::open_file(#symbol, __builtin_return_address(0),                               \
                            {ranks, name, mode, hints, file});                                  \
  }
#define CAIRN_MPI_CLOSE(symbol)                                           \
  CAIRN_HOOK(int, symbol, (MpiHandle * file)) {                           \
    return cairn::close_file(#symbol, __builtin_return_address(0), file); \
  }
#define CAIRN_MPI_SET_VIEW(symbol)                                                   \
  CAIRN_HOOK(int, symbol,                                                            \
             (MpiHandle file, long displacement, MpiHandle unit, MpiHandle type,     \
              const char* representation, MpiHandle hints)) {                        \
    return cairn::set_view(#symbol, __builtin_return_address(0),                     \
                           {file, displacement, unit, type, representation, hints}); \
  }
#define CAIRN_MPI_TRANSFER(symbol, alone)                                                     \
  CAIRN_HOOK(int, symbol,                                                                     \
             (MpiHandle file, const void* buffer, int count, MpiHandle type, void* status)) { \
    const void* const caller = __builtin_return_address(0);                                   \
    return cairn::transfer(cairn::call_of(file, caller, #symbol, #alone), caller,             \
                           {file, buffer, count, type, status});                              \
  }
#define CAIRN_MPI_TRANSFER_AT(symbol, alone)                                                 \
  CAIRN_HOOK(int, symbol,                                                                    \
             (MpiHandle file, long offset, const void* buffer, int count, MpiHandle type,    \
              void* status)) {                                                               \
    const void* const caller = __builtin_return_address(0);                                  \
    return cairn::transfer_at(cairn::call_of(file, caller, #symbol, #alone), caller, offset, \
                              {file, buffer, count, type, status});                          \
  }

#define CAIRN_MPI_CHANGE_SIZE(symbol)                                            \
  CAIRN_HOOK(int, symbol, (MpiHandle file, long size)) {                         \
    return cairn::change_size(#symbol, __builtin_return_address(0), file, size); \
  }

CAIRN_MPI_OPEN(MPI_File_open)
CAIRN_MPI_OPEN(PMPI_File_open)
CAIRN_MPI_CLOSE(MPI_File_close)
CAIRN_MPI_CLOSE(PMPI_File_close)
CAIRN_MPI_SET_VIEW(MPI_File_set_view)
CAIRN_MPI_SET_VIEW(PMPI_File_set_view)
CAIRN_MPI_CHANGE_SIZE(MPI_File_set_size)
CAIRN_MPI_CHANGE_SIZE(PMPI_File_set_size)
CAIRN_MPI_CHANGE_SIZE(MPI_File_preallocate)
CAIRN_MPI_CHANGE_SIZE(PMPI_File_preallocate)
CAIRN_MPI_TRANSFER(MPI_File_read_all, MPI_File_read)
CAIRN_MPI_TRANSFER(PMPI_File_read_all, PMPI_File_read)
CAIRN_MPI_TRANSFER(MPI_File_write_all, MPI_File_write)
CAIRN_MPI_TRANSFER(PMPI_File_write_all, PMPI_File_write)
CAIRN_MPI_TRANSFER_AT(MPI_File_read_at_all, MPI_File_read_at)
CAIRN_MPI_TRANSFER_AT(PMPI_File_read_at_all, PMPI_File_read_at)
CAIRN_MPI_TRANSFER_AT(MPI_File_write_at_all, MPI_File_write_at)
CAIRN_MPI_TRANSFER_AT(PMPI_File_write_at_all, PMPI_File_write_at)
