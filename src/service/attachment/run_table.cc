// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/run_table.h"

#include <cstdlib>

namespace cairn::node {

std::uint32_t Run::number() const {
  return static_cast<std::uint32_t>(std::strtoul(id.c_str(), nullptr, 10));
}

bool RunTable::begin(Run run) {
  const std::lock_guard lock(mutex_);
  const std::string id = run.id;
  return runs_.emplace(id, std::move(run)).second;
}

std::optional<Run> RunTable::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return std::nullopt;
  return found->second;
}

std::optional<Run> RunTable::end(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return std::nullopt;
  Run run = std::move(found->second);
  runs_.erase(found);
  return run;
}

bool RunTable::is_empty() const {
  const std::lock_guard lock(mutex_);
  return runs_.empty();
}

std::vector<Run> RunTable::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Run> runs;
  for (const auto& entry : runs_) runs.push_back(entry.second);
  return runs;
}

}  // namespace cairn::node
