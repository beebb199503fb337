// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/service_open.h"

#include <errno.h>

#include "memory/buffer/object_lifecycle.h"
#include "service/write_back/service_opens.h"

namespace cairn::node {

bool DiscardingService::hand_over(ObjectIndex, const Backing&) { return false; }

int DiscardingService::request_flush(ObjectIndex, bool) { return -EBADF; }

void DiscardingService::discarded(ObjectIndex object) {
  if (const StoreFilePtr file = files_.find(object)) files_.drop_if_idle(file);
  (void)memory_.objects().reclaim(object, self_, memory_.owners());
}

ServiceOpen::ServiceOpen(Actor& actor, Backing& backing, const StoreStatus& status,
                         StoreFiles& files, Flusher& flusher)
    : actor_(actor),
      backing_(backing),
      service_(*actor.memory, actor.self, files),
      flusher_(flusher),
      index_(open_for_service(actor, backing, status)) {}

// The program may have unlinked the file since, and closed it before us.
ServiceOpen::~ServiceOpen() {
  if (!is_open()) return;
  Object& object = access().object();
  StoreStatus status;
  if (backing_.status(&status) == 0 && status.links == 0) object.set(kObjectUnlinked);
  (void)close_for_service(access());
  if (object.opens.load() == 0 && object.has(kObjectTimesDirty)) flusher_.kick(false);
}

}  // namespace cairn::node
