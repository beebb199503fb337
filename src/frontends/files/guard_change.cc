// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/guard_change.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/paths/visible_status.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

constexpr char kCapability[] = "security.capability";

}  // namespace

bool is_guarding_mode(mode_t mode) { return (mode & (S_ISUID | S_ISGID)) != 0; }

bool is_guarding_attribute(const char* name) {
  return name != nullptr && std::strcmp(name, kCapability) == 0;
}

bool is_guarded(int fd, const StoreStatus& status) {
  if (status.is_guarded()) return true;
  // Only a file that can be executed has use for a capability, and one that was just made has none.
  constexpr mode_t kExecutable = S_IXUSR | S_IXGRP | S_IXOTH;
  if ((status.mode & kExecutable) == 0 || status.stamp.size == 0) return false;
  return sys::call(SYS_fgetxattr, fd, sys::word(kCapability), 0, 0) > 0;
}

GuardChange::GuardChange(OpenFile* file, bool is_wanted) {
  if (!is_wanted || file == nullptr) return;
  actor_ = Session::instance().actor_if_any();
  object_ = file->object;
  if (actor_ != nullptr) begin(*file->backing);
}

GuardChange::GuardChange(int directory, const char* path, int flags, bool is_wanted) {
  if (!is_wanted || path == nullptr || !may_need_overlay()) return;
  struct ::statx status;
  if (sys::statx(directory, path, flags | AT_NO_AUTOMOUNT, kOverlayMask, &status) < 0) return;
  object_ = object_of(status);
  if (object_ == ObjectIndex::kNone) return;
  actor_ = Session::instance().actor_if_any();
  // The service stores it: it has a descriptor of every dirty file.
  PosixBacking nothing;
  if (actor_ != nullptr) begin(nothing);
}

void GuardChange::begin(Backing& backing) {
  CAIRN_DCHECK(object_ != ObjectIndex::kNone);
  Object& object = actor_->object(object_);
  object.set(kObjectGuarded);
  // A writer that has seen the flag down may still be at work, and so may the service, which sets
  // the size of a file after its last writer: through mode waits for both. Should the store refuse
  // the data, the call goes ahead all the same, as it would natively.
  is_through_ = enter_through({*actor_, object_, backing, Session::instance()}) == 0;
}

GuardChange::~GuardChange() {
  if (actor_ == nullptr) return;
  Object& object = actor_->object(object_);
  {
    // A write may have looked at the file before the call, and taken the flag down.
    OwnedGuard guard(object.lock, actor_->self, actor_->owners());
    object.set(kObjectGuarded);
  }
  if (is_through_) leave_through(*actor_, object_);
}

}  // namespace cairn
