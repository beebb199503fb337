// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/dirty_room.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::advice {

DrainedWrites drain_writes(const WriteTimes& times, double seconds, double rate,
                           double room_bytes) {
  CAIRN_CHECK(rate > 0);
  CAIRN_CHECK(room_bytes >= 0);
  DrainedWrites result;
  double dirty = 0;
  double begin = 0;
  for (const double bytes : times.bytes) {
    // The end of the record is the end of its last part.
    const double length = std::clamp(seconds - begin, 0.0, times.part_seconds);
    begin += times.part_seconds;
    if (length == 0 && bytes == 0) continue;
    dirty = std::max(0.0, dirty + bytes - rate * length);
    const double excess = dirty - room_bytes;
    if (excess > 0) {
      result.stall_seconds += excess / rate;
      dirty = room_bytes;
    }
    result.highest_bytes = std::max(result.highest_bytes, dirty);
  }
  CAIRN_DCHECK(dirty <= room_bytes);
  result.drain_seconds = dirty / rate;
  return result;
}

}  // namespace cairn::advice
