// SPDX-License-Identifier: Apache-2.0
#include "cluster/ownership/testing/register_history.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace cairn::cluster {

RegisterHistory::RegisterHistory() {
  clusters_[kFirstValue] = {INT64_MIN, INT64_MIN, INT64_MIN, true};
}

void RegisterHistory::begin_write(std::uint64_t value, std::int64_t begin) {
  const bool is_new = clusters_.emplace(value, Cluster{begin, INT64_MAX, begin, false}).second;
  CAIRN_CHECK(is_new);
}

void RegisterHistory::end_write(std::uint64_t value, std::int64_t end) {
  Cluster& cluster = clusters_.at(value);
  CAIRN_CHECK(end >= cluster.write_begin);
  cluster.first_end = std::min(cluster.first_end, end);
  cluster.has_effect = true;
}

void RegisterHistory::read(std::uint64_t value, std::int64_t begin, std::int64_t end) {
  ++reads_;
  const auto found = clusters_.find(value);
  if (found == clusters_.end()) {
    unknown_ = "a read of " + std::to_string(value) + ", which nobody has written";
    return;
  }
  Cluster& cluster = found->second;
  cluster.is_read_too_early |= end < cluster.write_begin;
  cluster.first_end = std::min(cluster.first_end, end);
  cluster.last_begin = std::max(cluster.last_begin, begin);
  cluster.has_effect = true;
}

std::string RegisterHistory::problem() const {
  if (!unknown_.empty()) return unknown_;
  struct Zone {
    std::int64_t from;
    std::int64_t to;
    std::uint64_t value;
  };
  std::vector<Zone> forward;
  std::vector<Zone> backward;
  for (const auto& [value, cluster] : clusters_) {
    if (cluster.is_read_too_early) return std::to_string(value) + " is read before it is written";
    if (!cluster.has_effect) continue;
    if (cluster.first_end < cluster.last_begin) {
      forward.push_back({cluster.first_end, cluster.last_begin, value});
    } else {
      backward.push_back({cluster.last_begin, cluster.first_end, value});
    }
  }
  std::ranges::sort(forward, {}, &Zone::from);
  for (std::size_t i = 1; i < forward.size(); ++i) {
    if (forward[i].from < forward[i - 1].to) {
      return std::to_string(forward[i - 1].value) + " is read after " +
             std::to_string(forward[i].value) + " was there, or the other way round";
    }
  }
  for (const Zone& zone : backward) {
    const auto behind = std::ranges::upper_bound(forward, zone.from, {}, &Zone::from);
    if (behind == forward.begin()) continue;
    const Zone& around = *std::prev(behind);
    if (around.from < zone.from && zone.to < around.to) {
      return std::to_string(zone.value) + " came and went while " + std::to_string(around.value) +
             " was read before and after";
    }
  }
  return {};
}

}  // namespace cairn::cluster
