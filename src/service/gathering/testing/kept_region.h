// SPDX-License-Identifier: Apache-2.0
// The bytes of a region as the tiers have them: all of it, or nothing.
//
// Thread safety: one thread for each actor.
#pragma once

#include <cstddef>
#include <vector>

#include "memory/backing/region_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn::testing {

inline std::vector<std::byte> kept_region(Actor& actor, const StoreStatus& region) {
  if (actor.memory->objects().find(region.key) == ObjectIndex::kNone) return {};
  RegionBacking nothing(region, nullptr);
  NoService nobody;
  const ObjectIndex object = open_object(actor, nothing, region, false);
  const ObjectAccess access{actor, object, nothing, nobody};
  std::vector<std::byte> bytes(region.stamp.size);
  const bool is_whole =
      read_object(access, 0, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  (void)close_object(access, false);
  if (!is_whole) bytes.clear();
  return bytes;
}

}  // namespace cairn::testing
