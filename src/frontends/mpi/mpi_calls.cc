// SPDX-License-Identifier: Apache-2.0
// The calls of MPI's files that are not the same on memory that the ranks share.
//
// Both names of each call are hooks: Fortran's bindings call the second one. A profiling tool
// between the program and the MPI has the first one, and comes next.
#include "base/check.h"
#include "frontends/libc/hook.h"
#include "frontends/mpi/file_views.h"
#include "frontends/mpi/mpi_search.h"
#include "frontends/mpi/shared_files.h"
#include "frontends/mpi_interface/mpi_library.h"

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

// MPI's calls that reach the hooks through a profiling tool come twice. The first one does all:
// what it adds must not be taken for the program's by the second.
class Outermost {
 public:
  Outermost() : is_first_(depth_++ == 0) {}
  ~Outermost() {
    CAIRN_CHECK(depth_ > 0);
    --depth_;
  }
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  bool is_first() const { return is_first_; }

 private:
  static thread_local int depth_;
  const bool is_first_;
};
constinit thread_local int Outermost::depth_ = 0;

int open_file(const char* call, const void* caller, const Open& open) {
  using Function = int(MpiHandle, const char*, int, MpiHandle, MpiHandle*);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  const Outermost here;
  const MpiLibrary* const mpi = here.is_first() ? mpi_behind(caller) : nullptr;
  const bool is_possible = mpi != nullptr && SharedFiles::are_possible(*mpi, open.ranks);
  const int result = next(open.ranks, open.name, open.mode, open.hints, open.file);
  if (is_possible) {
    const bool is_open = result == 0 && open.file != nullptr;
    SharedFiles::opened(*mpi, {open.ranks, open.name, open.hints, is_open ? *open.file : 0});
  }
  return result;
}

int close_file(const char* call, const void* caller, MpiHandle* file) {
  auto* const next = reinterpret_cast<int (*)(MpiHandle*)>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  MpiHandle ranks = file == nullptr ? 0 : SharedFiles::forget(*file);
  const int result = next(file);
  if (ranks != 0) (void)mpi_behind(caller)->comm_free(&ranks);
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
  file->hints.look(mpi, view.file);
  file->hints.note(mpi, view.hints);
  const long mine = file->hints.has_wishes() ? 0 : mean_run_bytes(mpi, view.type);
  return least_of_ranks(mpi, file, mine) >= kDirectBytes;
}

int set_view(const char* call, const void* caller, const View& view) {
  using Function = int(MpiHandle, long, MpiHandle, MpiHandle, const char*, MpiHandle);
  auto* const next = reinterpret_cast<Function*>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  const auto pass_on = [&](MpiHandle hints) {
    return next(view.file, view.displacement, view.unit, view.type, view.representation, hints);
  };
  const Outermost here;
  SharedFile* const file = here.is_first() ? SharedFiles::find(view.file) : nullptr;
  if (file == nullptr) return pass_on(view.hints);
  const MpiLibrary& mpi = *mpi_behind(caller);
  const bool is_direct = is_direct_for_all(mpi, file, view);
  MpiHandle hints = file->hints.with_ours(mpi, view.hints, is_direct);
  const int result = pass_on(hints);
  if (hints != view.hints) (void)mpi.info_free(&hints);
  if (result == 0) file->hints.are_passed(mpi, is_direct);
  // A rank for which it has failed still has its view from before.
  file->is_direct.store(is_direct && least_of_ranks(mpi, file, result == 0 ? 1 : 0) == 1);
  return result;
}

// The program's wishes may come late.
int set_info(const char* call, const void* caller, MpiHandle file, MpiHandle hints) {
  auto* const next =
      reinterpret_cast<int (*)(MpiHandle, MpiHandle)>(next_mpi_function(call, caller));
  if (next == nullptr) return kNoLibrary;
  const Outermost here;
  SharedFile* const known = here.is_first() ? SharedFiles::find(file) : nullptr;
  if (known == nullptr) return next(file, hints);
  const MpiLibrary& mpi = *mpi_behind(caller);
  known->hints.note(mpi, hints);
  if (!known->is_direct.load()) return next(file, hints);
  const bool is_direct = least_of_ranks(mpi, known, known->hints.has_wishes() ? 0 : 1) == 1;
  known->is_direct.store(is_direct);
  // Open MPI's ROMIO hears of hints with a view only: there the next one takes ours back, which are
  // about each rank's own accesses.
  if (is_direct || mpi.is_open_mpi) return next(file, hints);
  MpiHandle all = known->hints.with_ours(mpi, hints, false);
  const int result = next(file, all);
  if (all != hints) (void)mpi.info_free(&all);
  if (result == 0) known->hints.are_passed(mpi, false);
  return result;
}

// Open MPI knows no hint of which all its versions think the same. MPI lets a rank return from a
// collective access before the others have come, so that each may do its part alone.
const char* call_of(MpiHandle file, const void* caller, const char* collective, const char* alone) {
  const SharedFile* const known = SharedFiles::find(file);
  const bool is_alone =
      known != nullptr && known->is_direct.load() && mpi_behind(caller)->is_open_mpi;
  return is_alone ? alone : collective;
}

enum class Way { kReads, kWrites };

// MPI's own collective reads come after what the ranks have written collectively before, because
// all of them go through the same few. Programs rely on it, though MPI does not promise it.
void keep_order(MpiHandle file, const void* caller, Way way) {
  SharedFile* const known = SharedFiles::find(file);
  if (known == nullptr || !known->is_direct.load()) return;
  if (way == Way::kWrites) {
    known->is_written.store(true);
  } else if (known->is_written.load()) {
    (void)least_of_ranks(*mpi_behind(caller), known, 0);
  }
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
    (void)least_of_ranks(*mpi_behind(caller), known, 0);
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
#define CAIRN_MPI_SET_INFO(symbol)                                             \
  CAIRN_HOOK(int, symbol, (MpiHandle file, MpiHandle hints)) {                 \
    return cairn::set_info(#symbol, __builtin_return_address(0), file, hints); \
  }
// Accesses in two parts have no status; the register is passed on unread.
#define CAIRN_MPI_TRANSFER(symbol, alone, way)                                                \
  CAIRN_HOOK(int, symbol,                                                                     \
             (MpiHandle file, const void* buffer, int count, MpiHandle type, void* status)) { \
    const void* const caller = __builtin_return_address(0);                                   \
    cairn::keep_order(file, caller, cairn::Way::way);                                         \
    return cairn::transfer(cairn::call_of(file, caller, #symbol, #alone), caller,             \
                           {file, buffer, count, type, status});                              \
  }
#define CAIRN_MPI_TRANSFER_AT(symbol, alone, way)                                            \
  CAIRN_HOOK(int, symbol,                                                                    \
             (MpiHandle file, long offset, const void* buffer, int count, MpiHandle type,    \
              void* status)) {                                                               \
    const void* const caller = __builtin_return_address(0);                                  \
    cairn::keep_order(file, caller, cairn::Way::way);                                        \
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
CAIRN_MPI_SET_INFO(MPI_File_set_info)
CAIRN_MPI_SET_INFO(PMPI_File_set_info)
CAIRN_MPI_TRANSFER(MPI_File_read_all, MPI_File_read, kReads)
CAIRN_MPI_TRANSFER(PMPI_File_read_all, PMPI_File_read, kReads)
CAIRN_MPI_TRANSFER(MPI_File_write_all, MPI_File_write, kWrites)
CAIRN_MPI_TRANSFER(PMPI_File_write_all, PMPI_File_write, kWrites)
CAIRN_MPI_TRANSFER_AT(MPI_File_read_at_all, MPI_File_read_at, kReads)
CAIRN_MPI_TRANSFER_AT(PMPI_File_read_at_all, PMPI_File_read_at, kReads)
CAIRN_MPI_TRANSFER_AT(MPI_File_write_at_all, MPI_File_write_at, kWrites)
CAIRN_MPI_TRANSFER_AT(PMPI_File_write_at_all, PMPI_File_write_at, kWrites)
// These stay collective: they only keep the order.
CAIRN_MPI_TRANSFER(MPI_File_read_all_begin, MPI_File_read_all_begin, kReads)
CAIRN_MPI_TRANSFER(PMPI_File_read_all_begin, PMPI_File_read_all_begin, kReads)
CAIRN_MPI_TRANSFER(MPI_File_read_ordered, MPI_File_read_ordered, kReads)
CAIRN_MPI_TRANSFER(PMPI_File_read_ordered, PMPI_File_read_ordered, kReads)
CAIRN_MPI_TRANSFER(MPI_File_read_ordered_begin, MPI_File_read_ordered_begin, kReads)
CAIRN_MPI_TRANSFER(PMPI_File_read_ordered_begin, PMPI_File_read_ordered_begin, kReads)
CAIRN_MPI_TRANSFER_AT(MPI_File_read_at_all_begin, MPI_File_read_at_all_begin, kReads)
CAIRN_MPI_TRANSFER_AT(PMPI_File_read_at_all_begin, PMPI_File_read_at_all_begin, kReads)
CAIRN_MPI_TRANSFER(MPI_File_write_all_begin, MPI_File_write_all_begin, kWrites)
CAIRN_MPI_TRANSFER(PMPI_File_write_all_begin, PMPI_File_write_all_begin, kWrites)
CAIRN_MPI_TRANSFER(MPI_File_write_ordered, MPI_File_write_ordered, kWrites)
CAIRN_MPI_TRANSFER(PMPI_File_write_ordered, PMPI_File_write_ordered, kWrites)
CAIRN_MPI_TRANSFER(MPI_File_write_ordered_begin, MPI_File_write_ordered_begin, kWrites)
CAIRN_MPI_TRANSFER(PMPI_File_write_ordered_begin, PMPI_File_write_ordered_begin, kWrites)
CAIRN_MPI_TRANSFER(MPI_File_iwrite_all, MPI_File_iwrite_all, kWrites)
CAIRN_MPI_TRANSFER(PMPI_File_iwrite_all, PMPI_File_iwrite_all, kWrites)
CAIRN_MPI_TRANSFER_AT(MPI_File_write_at_all_begin, MPI_File_write_at_all_begin, kWrites)
CAIRN_MPI_TRANSFER_AT(PMPI_File_write_at_all_begin, PMPI_File_write_at_all_begin, kWrites)
CAIRN_MPI_TRANSFER_AT(MPI_File_iwrite_at_all, MPI_File_iwrite_at_all, kWrites)
CAIRN_MPI_TRANSFER_AT(PMPI_File_iwrite_at_all, PMPI_File_iwrite_at_all, kWrites)
