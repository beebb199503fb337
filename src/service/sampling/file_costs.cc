// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/file_costs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/learning/accessed_file.h"
#include "service/learning/read_events.h"

namespace cairn::node {
namespace {

void add_cost(const AccessEvent& event, FileCost* cost) {
  CAIRN_DCHECK(cost != nullptr);
  switch (event.kind) {
    case AccessKind::kMiss:
      cost->miss_bytes += event.length;
      break;
    case AccessKind::kLate:
      cost->late_bytes += event.length;
      break;
    case AccessKind::kBelow:
      cost->below_bytes += event.length;
      break;
    default:
      cost->hit_bytes += event.length;
      return;
  }
  ++cost->waits;
}

}  // namespace

void FileCosts::begin() {
  const std::lock_guard lock(mutex_);
  if (listeners_.fetch_add(1) != 0) return;
  files_.clear();
  gone_.clear();
}

void FileCosts::end() {
  const unsigned before = listeners_.fetch_sub(1);
  CAIRN_CHECK(before > 0);
}

void FileCosts::on_accesses(std::span<const ToldAccess> batch) {
  if (listeners_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  for (const ToldAccess& told : batch) {
    if (!is_read(told.event.kind) || told.event.object == ObjectIndex::kNone) continue;
    if (FileCost* cost = cost_of(told); cost != nullptr) add_cost(told.event, cost);
  }
}

// Null: there are too many files.
FileCost* FileCosts::cost_of(const ToldAccess& told) {
  const ObjectKey key = memory_.objects().at(told.event.object).key();
  const auto found = files_.find(raw(told.event.object));
  if (found != files_.end() && found->second.key == key) return &found->second.cost;
  if (found == files_.end() && files_.size() >= kFilesMax) return nullptr;
  if (found != files_.end() && gone_.size() < kFilesMax)
    gone_.push_back(std::move(found->second.cost));
  const pid_t pid = memory_.slot(told.slot()).pid.load(std::memory_order_relaxed);
  Entry& entry = files_[raw(told.event.object)];
  entry =
      Entry{key, FileCost{name_of_accessed(pid, told.event.descriptor, key), told.event.object}};
  return &entry.cost;
}

std::vector<FileCost> FileCosts::costliest(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  std::vector<FileCost> costs = gone_;
  for (const auto& [object, entry] : files_) costs.push_back(entry.cost);
  // What did not wait stands behind what did, by the bytes that were told of.
  std::sort(costs.begin(), costs.end(), [](const FileCost& a, const FileCost& b) {
    return std::pair(a.waited_bytes(), a.hit_bytes) > std::pair(b.waited_bytes(), b.hit_bytes);
  });
  if (costs.size() > count) costs.resize(count);
  CAIRN_CHECK(costs.size() <= count);
  return costs;
}

std::size_t FileCosts::files() const {
  const std::lock_guard lock(mutex_);
  return files_.size() + gone_.size();
}

}  // namespace cairn::node
