// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/shared_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/check.h"
#include "base/leading_number.h"
#include "frontends/client/session.h"
#include "frontends/paths/path_filter.h"
#include "frontends/processes/launch_environment.h"

namespace cairn {
namespace {

// Grows and never shrinks: a table that is full for one rank and not for another would part them.
struct Chunk {
  static constexpr int kFiles = 32;
  SharedFile files[kFiles];
  std::atomic<Chunk*> next{nullptr};
};
constinit Chunk first_chunk{};
// Stands for a file in an entry that is being filled.
constexpr MpiHandle kTaken = 1;

template <typename Judge>
SharedFile* search(Judge judge) {
  for (Chunk* chunk = &first_chunk; chunk != nullptr; chunk = chunk->next.load()) {
    for (SharedFile& entry : chunk->files) {
      if (judge(entry)) return &entry;
    }
  }
  return nullptr;
}

SharedFile* take_entry() {
  const auto take = [](SharedFile& entry) {
    MpiHandle none = 0;
    return entry.file.compare_exchange_strong(none, kTaken);
  };
  for (;;) {
    if (SharedFile* entry = search(take); entry != nullptr) return entry;
    Chunk* last = &first_chunk;
    while (last->next.load() != nullptr) last = last->next.load();
    void* const memory = calloc(1, sizeof(Chunk));
    if (memory == nullptr) return nullptr;
    auto* const fresh = new (memory) Chunk;
    Chunk* none = nullptr;
    if (!last->next.compare_exchange_strong(none, fresh)) free(memory);
  }
}

int number_of(const char* name) {
  const char* const value = find_variable(environ, name);
  return value == nullptr ? 0 : static_cast<int>(leading_number(value, 10));
}

// How many ranks of this program the launcher has started on this node; 0 where it does not say.
int ranks_here(int all) {
  if (const int open_mpi = number_of("OMPI_COMM_WORLD_LOCAL_SIZE"); open_mpi != 0) return open_mpi;
  if (const int hydra = number_of("MPI_LOCALNRANKS"); hydra != 0) return hydra;
  if (number_of("SLURM_STEP_NUM_NODES") == 1 || all == 1) return all;
  return 0;
}

// A group of MPI, given back at the end.
class Group {
 public:
  explicit Group(const MpiLibrary& mpi) : mpi_(mpi) {}
  ~Group() {
    if (is_there_) (void)mpi_.group_free(&handle_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool take(int (*give)(MpiHandle, MpiHandle*), MpiHandle owner) {
    is_there_ = give(owner, &handle_) == 0;
    return is_there_;
  }
  MpiHandle handle() const { return handle_; }
  int size() const {
    int count = 0;
    return mpi_.group_size(handle_, &count) == 0 ? count : 0;
  }

 private:
  const MpiLibrary& mpi_;
  MpiHandle handle_ = 0;
  bool is_there_ = false;
};

// Ranks of another program (MPI_Comm_spawn) may be anywhere.
bool are_of_this_world(const MpiLibrary& mpi, const Group& ranks) {
  Group world(mpi);
  const int count = ranks.size();
  auto* const places = static_cast<int*>(calloc(static_cast<std::size_t>(count), 2 * sizeof(int)));
  bool are = places != nullptr && world.take(mpi.comm_group, mpi.world);
  for (int index = 0; are && index < count; ++index) places[index] = index;
  are = are && mpi.group_translate_ranks(ranks.handle(), count, places, world.handle(),
                                         places + count) == 0;
  for (int index = 0; are && index < count; ++index) are = places[count + index] >= 0;
  free(places);
  return are;
}

bool are_on_this_node(const MpiLibrary& mpi, MpiHandle file) {
  int all = 0;
  Group ranks(mpi);
  return mpi.comm_size(mpi.world, &all) == 0 && ranks_here(all) == all &&
         ranks.take(mpi.file_get_group, file) && are_of_this_world(mpi, ranks);
}

// Files are judged by their directory and name: the file itself may be gone for one rank when
// another has it open.
bool is_managed(const char* name) {
  char path[PATH_MAX];
  const char* const slash = strrchr(name, '/');
  const auto length =
      slash == nullptr ? std::size_t{0} : static_cast<std::size_t>(slash - name) + 1;
  char directory[PATH_MAX] = ".";
  if (length >= sizeof directory) return false;
  if (length > 0) {
    memcpy(directory, name, length);
    directory[length] = '\0';
  }
  if (realpath(directory, path) == nullptr) return false;
  const std::size_t end = strlen(path);
  const int added = snprintf(path + end, sizeof path - end, "/%s", name + length);
  PathFilter::resolve();
  return added > 0 && static_cast<std::size_t>(added) < sizeof path - end &&
         PathFilter::manages_path(path);
}

bool is_wanted() {
  if (!Session::instance().is_configured()) return false;
  const char* const wish = find_variable(environ, "CAIRN_MPI");
  return wish == nullptr || strcmp(wish, "off") != 0;
}

bool has(const MpiLibrary& mpi, MpiHandle hints, const char* key) {
  char value[8] = "";
  int is_set = 0;
  return mpi.info_get(hints, key, sizeof value - 1, value, &is_set) == 0 && is_set != 0;
}

}  // namespace

bool SharedFiles::are_wanted(const MpiLibrary& mpi, MpiHandle hints, const char* name) {
  return is_wanted() && name != nullptr && is_managed(name) && !has_collective_hints(mpi, hints);
}

void SharedFiles::opened(const MpiLibrary& mpi, MpiHandle file) {
  if (!are_on_this_node(mpi, file)) return;
  SharedFile* const entry = take_entry();
  if (entry == nullptr) return;
  CAIRN_CHECK(entry->file.load() == kTaken);
  entry->ranks = 0;
  // Without a view each access of a rank is one piece.
  entry->is_direct.store(true);
  entry->file.store(file);
}

SharedFile* SharedFiles::find(MpiHandle file) {
  return search([&](const SharedFile& entry) { return entry.file.load() == file; });
}

MpiHandle SharedFiles::forget(MpiHandle file) {
  SharedFile* const entry = find(file);
  if (entry == nullptr) return 0;
  CAIRN_CHECK(file != kTaken && file != 0);
  const MpiHandle ranks = entry->ranks;
  entry->file.store(0);
  return ranks;
}

long least_of_ranks(const MpiLibrary& mpi, SharedFile* file, long mine) {
  // Creations of communicators at the same time are told apart by it.
  constexpr int kTag = 17249;
  Group ranks(mpi);
  if (!ranks.take(mpi.file_get_group, file->file.load())) return -1;
  if (ranks.size() == 1) return mine;
  if (file->ranks == 0 &&
      mpi.comm_create_group(mpi.world, ranks.handle(), kTag, &file->ranks) != 0) {
    return -1;
  }
  long least = -1;
  const int result = mpi.allreduce(&mine, &least, 1, mpi.long_type, mpi.minimum, file->ranks);
  return result == 0 ? least : -1;
}

bool has_collective_hints(const MpiLibrary& mpi, MpiHandle hints) {
  if (mpi.is_no_info(hints)) return false;
  for (const char* key : {"collective_buffering", "cb_nodes", "romio_cb_write", "romio_cb_read"}) {
    if (has(mpi, hints, key)) return true;
  }
  return false;
}

MpiHandle hints_of_view(const MpiLibrary& mpi, MpiHandle hints, bool is_direct) {
  MpiHandle ours = 0;
  const bool is_made =
      (mpi.is_no_info(hints) ? mpi.info_create(&ours) : mpi.info_dup(hints, &ours)) == 0;
  if (!is_made) return hints;
  for (const char* key : {"romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read"}) {
    if (!mpi.is_no_info(hints) && has(mpi, hints, key)) continue;
    (void)mpi.info_set(ours, key, is_direct ? "disable" : "automatic");
  }
  return ours;
}

}  // namespace cairn
