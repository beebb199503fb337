// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/vfork_shadow.h"

#include <errno.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {

constinit VforkShadow::Child VforkShadow::children_[kChildren] = {};
constinit bool VforkShadow::has_overflowed_ = false;

namespace {

bool exchange(std::int32_t* pid, std::int32_t from, std::int32_t to) {
  return std::atomic_ref<std::int32_t>(*pid).compare_exchange_strong(from, to);
}

// A child that ended without exec leaves its notes behind.
bool is_gone(std::int32_t pid) { return sys::call(SYS_kill, pid, 0) == -ESRCH; }

}  // namespace

VforkShadow::Child* VforkShadow::mine() {
  const std::int32_t self = sys::getpid();
  for (Child& child : children_) {
    if (std::atomic_ref<std::int32_t>(child.pid).load() == self) return &child;
  }
  return nullptr;
}

VforkShadow::Child* VforkShadow::claim() {
  if (Child* known = mine(); known != nullptr) return known;
  const std::int32_t self = sys::getpid();
  for (Child& child : children_) {
    const std::int32_t holder = std::atomic_ref<std::int32_t>(child.pid).load();
    if (holder > 0 && !is_gone(holder)) continue;
    if (!exchange(&child.pid, holder, self)) continue;
    child.count = 0;
    child.has_overflowed = false;
    return &child;
  }
  return nullptr;
}

void VforkShadow::note(int fd, OpenFile* file) {
  CAIRN_DCHECK(fd >= 0);
  Child* child = claim();
  if (child == nullptr) has_overflowed_ = true;
  if (child == nullptr) return;
  for (unsigned index = 0; index < child->count; ++index) {
    if (child->notes[index].fd != fd) continue;
    child->notes[index].file = file;
    return;
  }
  if (child->count < kNotes)
    child->notes[child->count++] = Note{fd, file};
  else
    child->has_overflowed = true;
}

OpenFile* VforkShadow::find(int fd, OpenFile* in_table) {
  OpenFile* found = in_table;
  for_each([&](int noted, OpenFile* file) {
    if (noted == fd) found = file;
  });
  return found;
}

bool VforkShadow::has_note(int fd) {
  bool is_noted = false;
  for_each([&](int noted, OpenFile*) { is_noted |= noted == fd; });
  return is_noted;
}

bool VforkShadow::is_complete() {
  const Child* child = mine();
  return !has_overflowed_ && (child == nullptr || !child->has_overflowed);
}

unsigned VforkShadow::count() {
  const Child* child = mine();
  return child == nullptr ? 0 : child->count;
}

VforkShadow::Kept VforkShadow::suspend(Note* room) {
  Child* child = mine();
  if (child == nullptr) return {};
  std::copy_n(child->notes, child->count, room);
  const Kept kept{room, child->count, child->has_overflowed};
  exchange(&child->pid, child->pid, -sys::getpid());
  return kept;
}

void VforkShadow::resume(const Kept& kept) {
  // A place that says so all the same is that of an earlier process of this number.
  if (kept.count == 0) return;
  const std::int32_t self = sys::getpid();
  for (Child& child : children_) {
    if (exchange(&child.pid, -self, self)) return;
  }
  // Another child has taken the place.
  Child* child = claim();
  if (child == nullptr) has_overflowed_ = true;
  if (child == nullptr) return;
  child->count = kept.count;
  child->has_overflowed = kept.has_overflowed;
  std::copy_n(kept.notes, kept.count, child->notes);
}

}  // namespace cairn
