// SPDX-License-Identifier: Apache-2.0
//
// What a log has: for those who free it, and for people.
#include "service/durable_log/log_core.h"

namespace cairn::durable {

std::vector<PressingObject> LogCore::oldest(std::size_t count, bool only_under_pressure) const {
  const Lock lock(mutex_);
  std::vector<PressingObject> found;
  if (only_under_pressure && !is_pressed(lock)) return found;
  for (const UsedSegment& segment : ring_.used()) {
    if (segment.live == 0) continue;
    for (const auto& [number, object] : objects_.all()) {
      const auto place = object.live.find(segment.number);
      if (place == object.live.end()) continue;
      if (found.size() == count) return found;
      found.push_back({static_cast<LogObject>(number), place->second});
    }
    return found;
  }
  return found;
}

std::vector<LoggedDirectory> LogCore::directories() const {
  const Lock lock(mutex_);
  std::vector<LoggedDirectory> found;
  for (const auto& [number, object] : objects_.all()) {
    if (object.is_directory && !object.live.empty())
      found.push_back({static_cast<LogObject>(number), object.identity});
  }
  return found;
}

std::vector<RemovedObject> LogCore::removed() const {
  const Lock lock(mutex_);
  std::vector<RemovedObject> found;
  for (const auto& [number, object] : objects_.all()) {
    // What became of those of an earlier start of the machine is recovery's to find out.
    if (object.removed != Lsn::kNone && object.removed_in == boot_ && !object.live.empty())
      found.push_back({static_cast<LogObject>(number), object.removed, object.identity});
  }
  return found;
}

std::uint64_t LogCore::leftovers() const {
  const Lock lock(mutex_);
  return leftovers_;
}

LogFigures LogCore::figures() const {
  const Lock lock(mutex_);
  LogFigures now = figures_;
  now.segments = ring_.used().size();
  now.capacity_bytes = ring_.segments_max() * ring_.segment_bytes();
  now.used_bytes = now.segments * ring_.segment_bytes();
  now.objects = objects_.live_objects();
  return now;
}

}  // namespace cairn::durable
