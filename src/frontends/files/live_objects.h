// SPDX-License-Identifier: Apache-2.0
// A walk over all files that the node knows of now.
//
// Thread safety: any thread. A file that becomes known meanwhile may be left out.
#pragma once

#include <cstdint>

#include "memory/catalog/object_table.h"

namespace cairn {

// Calls visit(index, object) until it returns false.
template <typename Visit>
void for_each_live_object(const ObjectTable& objects, Visit&& visit) {
  std::uint32_t live = objects.live_count();
  for (std::uint32_t number = 1; number < objects.capacity() && live > 0; ++number) {
    const auto index = static_cast<ObjectIndex>(number);
    const Object& object = objects.at(index);
    if (!object.has(kObjectLive)) continue;
    --live;
    if (!visit(index, object)) return;
  }
}

}  // namespace cairn
