// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/inherited_through.h"

#include "base/check.h"
#include "frontends/client/session.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {

HoldIndex inherit_through(ObjectIndex object) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return HoldIndex::kNone;
  CAIRN_DCHECK(object != ObjectIndex::kNone);
  count_through(*actor, object);
  const HoldIndex hold = session.memory().descriptions().hold_through(object, actor->self);
  PosixBacking no_file;
  (void)finish_entering(ObjectAccess{*actor, object, no_file, session}, 0, UINT64_MAX);
  return hold;
}

}  // namespace cairn
