// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/shared_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/check.h"
#include "frontends/client/session.h"
#include "frontends/mpi_interface/ranks_of_node.h"
#include "frontends/paths/path_filter.h"

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

bool is_allowed() { return Session::instance().is_configured() && may_ranks_agree(); }

// A communicator of the same ranks, for us alone. Unlike a copy it leaves the program's attributes
// alone. 0 for one rank, which has nobody to talk to.
bool make_ranks(const MpiLibrary& mpi, MpiHandle ranks, MpiHandle* made) {
  MpiGroup group(mpi);
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
