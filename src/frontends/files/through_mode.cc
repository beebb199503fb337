// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/through_mode.h"

#include <errno.h>

#include "base/check.h"
#include "frontends/client/session.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {

int ThroughMode::enter(OpenFile& file) {
  CAIRN_DCHECK(file_ == nullptr);
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return -EIO;  // what others hold of the file cannot be stored
  if (const int error = enter_through(access_of(*actor, file)); error < 0) return error;
  // Without room for a hold the mode would outlast a process that is killed now, which costs speed
  // alone.
  hold_ = actor->memory->descriptions().hold_through(file.object, actor->self);
  file_ = &file;
  return 0;
}

void ThroughMode::keep_for_good() {
  Actor* actor = file_ == nullptr ? nullptr : Session::instance().actor_if_any();
  if (actor == nullptr) return;
  CAIRN_DCHECK(!is_kept_);
  keep_through_for_good(access_of(*actor, *file_));
  is_kept_ = true;
}

void ThroughMode::failed() {
  Actor* actor = is_kept_ ? Session::instance().actor_if_any() : nullptr;
  if (actor != nullptr) undo_keeping(access_of(*actor, *file_));
  is_kept_ = false;
}

ThroughMode::~ThroughMode() {
  Actor* actor = file_ == nullptr ? nullptr : Session::instance().actor_if_any();
  if (actor == nullptr) return;
  {
    Object& object = actor->object(file_->object);
    const OwnedGuard guard(object.lock, actor->self, actor->owners());
    CAIRN_DCHECK(object.through.load(std::memory_order_relaxed) != 0);
    (void)adopt_kernel_state(access_of(*actor, *file_));
  }
  if (hold_ != HoldIndex::kNone) actor->memory->descriptions().release(hold_, actor->self);
  leave_through(*actor, file_->object);
}

}  // namespace cairn
