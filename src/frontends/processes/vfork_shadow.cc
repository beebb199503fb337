// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/vfork_shadow.h"

#include <errno.h>

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
    return &child;
  }
  return nullptr;
}

void VforkShadow::note(int fd, OpenFile* file) {
  Child* child = claim();
  for (unsigned index = 0; child != nullptr && index < child->count; ++index) {
    if (child->notes[index].fd != fd) continue;
    child->notes[index].file = file;
    return;
  }
  if (child != nullptr && child->count < kNotes) {
    CAIRN_DCHECK(fd >= 0);
    child->notes[child->count++] = Note{fd, file};
  } else {
    has_overflowed_ = true;
  }
}

OpenFile* VforkShadow::find(int fd, OpenFile* in_table) {
  const Child* child = mine();
  if (child == nullptr) return in_table;
  for (unsigned index = 0; index < child->count; ++index) {
    if (child->notes[index].fd == fd) return child->notes[index].file;
  }
  return in_table;
}

void VforkShadow::suspend() {
  if (Child* child = mine(); child != nullptr) {
    exchange(&child->pid, child->pid, -sys::getpid());
  }
}

void VforkShadow::resume() {
  const std::int32_t self = sys::getpid();
  for (Child& child : children_) {
    if (exchange(&child.pid, -self, self)) return;
  }
}

}  // namespace cairn
