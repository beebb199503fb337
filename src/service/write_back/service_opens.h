// SPDX-License-Identifier: Apache-2.0
// Opens of objects that the service makes for itself, for as long as it works on a file. They are
// counted as its own, so that its successor takes back what a death has left
// (service/recovery/takeover.h).
//
// The own count follows the open and goes before the close: a death in between leaves an open too
// many, never one too few.
//
// Thread safety: any thread of the service.
#pragma once

#include "memory/buffer/object_lifecycle.h"

namespace cairn::node {

inline ObjectIndex open_for_service(Actor& actor, Backing& backing, const StoreStatus& status,
                                    HandOver* service = nullptr) {
  const ObjectIndex index = open_object(actor, backing, status, false, service);
  if (index != ObjectIndex::kNone)
    actor.object(index).service_opens.fetch_add(1, std::memory_order_acq_rel);
  return index;
}

inline int close_for_service(const ObjectAccess& access) {
  access.object().service_opens.fetch_sub(1, std::memory_order_acq_rel);
  return close_object(access, false);
}

}  // namespace cairn::node
