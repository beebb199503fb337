// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/shared_files.h"

#include <limits.h>
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

// Without a world there is none to ask for its size: a program may have sessions only.
bool has_world_on_this_node(const MpiLibrary& mpi) {
  int is_there = 0;
  int all = 0;
  return mpi.initialized(&is_there) == 0 && is_there != 0 && mpi.comm_size(mpi.world, &all) == 0 &&
         ranks_here(all) == all;
}

bool are_on_this_node(const MpiLibrary& mpi, MpiHandle ranks) {
  int are_two_groups = 0;
  Group group(mpi);
  return has_world_on_this_node(mpi) && mpi.comm_test_inter(ranks, &are_two_groups) == 0 &&
         are_two_groups == 0 && group.take(mpi.comm_group, ranks) && are_of_this_world(mpi, group);
}

// Judged when the file is open, as the open itself has judged it: by where its name leads. ROMIO
// takes names with the kind of file system before them ("ufs:/scratch/out").
bool is_managed(const char* name) {
  char path[PATH_MAX];
  if (name == nullptr || !Session::instance().is_attached()) return false;
  if (realpath(name, path) == nullptr) {
    const char* const mark = strchr(name, ':');
    if (mark == nullptr || realpath(mark + 1, path) == nullptr) return false;
  }
  PathFilter::resolve();
  return PathFilter::manages_path(path);
}

bool is_allowed() {
  if (!Session::instance().is_configured()) return false;
  const char* const wish = find_variable(environ, "CAIRN_MPI");
  return wish == nullptr || strcmp(wish, "off") != 0;
}

// A communicator of the same ranks, for us alone. Unlike a copy it leaves the program's attributes
// alone. 0 for one rank, which has nobody to talk to.
bool make_ranks(const MpiLibrary& mpi, MpiHandle ranks, MpiHandle* made) {
  Group group(mpi);
  if (!group.take(mpi.comm_group, ranks)) return false;
  return group.size() == 1 || mpi.comm_create(ranks, group.handle(), made) == 0;
}

// What a rank says of a file that it has opened; the least of them holds for all.
enum Verdict : long { kNotOurs, kOursWithWishes, kOurs };

Verdict verdict(const MpiLibrary& mpi, const SharedFiles::Opened& opened, SharedFile* entry) {
  if (opened.file == 0 || entry == nullptr || !is_managed(opened.name)) return kNotOurs;
  CAIRN_CHECK(entry->ranks == 0 && entry->file.load() == kTaken);
  entry->hints = {};
  entry->hints.note(mpi, opened.hints);
  entry->hints.look(mpi, opened.file);
  return entry->hints.has_wishes() ? kOursWithWishes : kOurs;
}

long least_of(const MpiLibrary& mpi, MpiHandle ranks, long mine) {
  if (ranks == 0) return mine;
  long least = -1;
  const int result = mpi.allreduce(&mine, &least, 1, mpi.long_type, mpi.minimum, ranks);
  return result == 0 ? least : -1;
}

}  // namespace

bool SharedFiles::are_possible(const MpiLibrary& mpi, MpiHandle ranks) {
  return is_allowed() && mpi.value_of(ranks) != mpi.no_ranks && are_on_this_node(mpi, ranks);
}

void SharedFiles::opened(const MpiLibrary& mpi, const Opened& opened) {
  MpiHandle ranks = 0;
  if (!make_ranks(mpi, opened.ranks, &ranks)) return;
  // One that was closed by a way that nobody has seen.
  (void)forget(opened.file);
  SharedFile* const entry = take_entry();
  const long least = least_of(mpi, ranks, verdict(mpi, opened, entry));
  if (least < kOursWithWishes) {
    if (entry != nullptr) entry->file.store(0);
    if (ranks != 0) (void)mpi.comm_free(&ranks);
    return;
  }
  CAIRN_CHECK(entry != nullptr && entry->file.load() == kTaken);
  entry->ranks = ranks;
  // Without a view each access of a rank is one piece.
  entry->is_direct.store(least == kOurs);
  entry->is_written.store(false);
  entry->file.store(opened.file);
}

SharedFile* SharedFiles::find(MpiHandle file) {
  if (file == 0 || file == kTaken) return nullptr;
  return search([&](const SharedFile& entry) { return entry.file.load() == file; });
}

MpiHandle SharedFiles::forget(MpiHandle file) {
  SharedFile* const entry = find(file);
  if (entry == nullptr) return 0;
  const MpiHandle ranks = entry->ranks;
  entry->ranks = 0;
  entry->file.store(0);
  return ranks;
}

long least_of_ranks(const MpiLibrary& mpi, SharedFile* file, long mine) {
  file->is_written.store(false);
  return least_of(mpi, file->ranks, mine);
}

}  // namespace cairn
