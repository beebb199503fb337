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
    child.notes.count = 0;
    child.notes.has_overflowed = false;
    return &child;
  }
  return nullptr;
}

void VforkShadow::note(int fd, OpenFile* file) {
  CAIRN_DCHECK(fd >= 0);
  Child* child = claim();
  if (child == nullptr) has_overflowed_ = true;
  if (child == nullptr) return;
  Notes& notes = child->notes;
  for (unsigned index = 0; index < notes.count; ++index) {
    if (notes.at[index].fd != fd) continue;
    notes.at[index].file = file;
    return;
  }
  if (notes.count < kNotes)
    notes.at[notes.count++] = Note{fd, file};
  else
    notes.has_overflowed = true;
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
  return !has_overflowed_ && (child == nullptr || !child->notes.has_overflowed);
}

void VforkShadow::suspend(Notes* kept) {
  kept->count = 0;
  kept->has_overflowed = false;
  Child* child = mine();
  if (child == nullptr) return;
  kept->count = child->notes.count;
  kept->has_overflowed = child->notes.has_overflowed;
  std::copy_n(child->notes.at, kept->count, kept->at);
  exchange(&child->pid, child->pid, -sys::getpid());
}

void VforkShadow::resume(const Notes& kept) {
  const std::int32_t self = sys::getpid();
  for (Child& child : children_) {
    if (exchange(&child.pid, -self, self)) return;
  }
  // Another child has taken the place, or there was nothing to keep.
  if (kept.count == 0) return;
  Child* child = claim();
  if (child == nullptr) has_overflowed_ = true;
  if (child == nullptr) return;
  child->notes.count = kept.count;
  child->notes.has_overflowed = kept.has_overflowed;
  std::copy_n(kept.at, kept.count, child->notes.at);
}

}  // namespace cairn
