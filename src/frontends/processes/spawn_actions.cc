// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/spawn_actions.h"

#include <stdlib.h>
#include <string.h>

#include <cstdint>
#include <new>
#include <type_traits>

#include "base/check.h"

namespace cairn {
namespace {

// In the padding that libc reserves at the end of the object and clears when it is initialised.
struct Anchor {
  std::uint64_t magic;
  SpawnNotes* notes;
};
constexpr std::uint64_t kMagic = 0x43616972'6e53706eULL;
static_assert(sizeof(posix_spawn_file_actions_t::__pad) >= sizeof(Anchor));
static_assert(std::is_trivially_copyable_v<SpawnAction>, "realloc() moves them");
static_assert(std::is_trivially_destructible_v<SpawnNotes>, "free() ends them");

char* place_of(const posix_spawn_file_actions_t* actions) {
  const auto* padding = reinterpret_cast<const char*>(actions->__pad);
  return const_cast<char*>(padding + sizeof actions->__pad - sizeof(Anchor));
}

SpawnNotes* notes_of(const posix_spawn_file_actions_t* actions) {
  if (actions == nullptr) return nullptr;
  Anchor anchor;
  memcpy(&anchor, place_of(actions), sizeof anchor);
  return anchor.magic == kMagic ? anchor.notes : nullptr;
}

void set_notes(posix_spawn_file_actions_t* actions, SpawnNotes* notes) {
  const Anchor anchor{notes != nullptr ? kMagic : 0, notes};
  memcpy(place_of(actions), &anchor, sizeof anchor);
}

}  // namespace

const SpawnNotes* SpawnNotes::of(const posix_spawn_file_actions_t* actions) {
  return notes_of(actions);
}

void SpawnNotes::init(posix_spawn_file_actions_t* actions) { set_notes(actions, nullptr); }

bool SpawnNotes::grow() {
  constexpr unsigned kFirst = 8;
  const unsigned wanted = capacity_ == 0 ? kFirst : capacity_ * 2;
  void* larger = realloc(static_cast<void*>(list_), wanted * sizeof(SpawnAction));
  if (larger == nullptr) return false;
  list_ = static_cast<SpawnAction*>(larger);
  capacity_ = wanted;
  return true;
}

void SpawnNotes::add(posix_spawn_file_actions_t* actions, const SpawnAction& action) {
  SpawnNotes* notes = notes_of(actions);
  if (notes == nullptr) {
    void* memory = malloc(sizeof(SpawnNotes));
    if (memory == nullptr) return;
    notes = new (memory) SpawnNotes();
    set_notes(actions, notes);
  }
  if (notes->count_ == notes->capacity_ && !notes->grow()) {
    notes->is_complete_ = false;
    return;
  }
  SpawnAction noted = action;
  if (action.path != nullptr) {
    noted.path = strdup(action.path);
    if (noted.path == nullptr) {
      notes->is_complete_ = false;
      return;
    }
  }
  CAIRN_DCHECK(notes->count_ < notes->capacity_);
  new (&notes->list_[notes->count_++]) SpawnAction(noted);
}

void SpawnNotes::drop(posix_spawn_file_actions_t* actions) {
  SpawnNotes* notes = notes_of(actions);
  if (notes == nullptr) return;
  for (unsigned index = 0; index < notes->count_; ++index) free(notes->list_[index].path);
  free(notes->list_);
  free(notes);
  set_notes(actions, nullptr);
}

int SpawnNotes::highest() const {
  int highest = -1;
  for (unsigned index = 0; index < count_; ++index) {
    if (list_[index].fd > highest) highest = list_[index].fd;
    if (list_[index].to > highest) highest = list_[index].to;
  }
  return highest;
}

}  // namespace cairn
