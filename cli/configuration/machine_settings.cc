// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/machine_settings.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/private_file.h"
#include "base/size_text.h"
#include "base/state_directory.h"
#include "cli/configuration/machine.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

std::string ram_default_source(const MemoryState& memory) {
  const uint64_t left = memory.limit_left_bytes.value_or(memory.available_bytes);
  if (left < memory.available_bytes) {
    return fmt::format("found: a quarter of the {} that the memory cgroup leaves",
                       format_size(left));
  }
  return fmt::format("found: a quarter of the {} of memory available",
                     format_size(memory.available_bytes));
}

}  // namespace

std::vector<std::string> check_directories(std::string_view option,
                                           const std::vector<SettingItem>& items, Draft& draft) {
  std::vector<std::string> directories;
  for (const SettingItem& item : items) {
    const std::string path = absolute_path(item.text);
    const std::string what = buffering_problem(item.text, path);
    if (!what.empty()) {
      draft.complain(item.source, fmt::format("{}: {}", option, what));
    } else if (std::find(directories.begin(), directories.end(), path) == directories.end()) {
      directories.push_back(path);
    }
  }
  return directories;
}

void resolve_ram(Draft& draft) {
  const MemoryState memory = read_memory_state(draft.roots);
  std::string& source = draft.sources["ram.capacity"];
  if (!draft.ram_bytes) source = ram_default_source(memory);
  const uint64_t capacity = draft.ram_bytes.value_or(default_ram_capacity(memory));
  draft.configuration.node.ram_capacity_bytes = capacity;
  if (draft.ram_bytes && capacity != 0 && capacity < TierSettings::kCapacityMin) {
    draft.complain(source, fmt::format("ram.capacity: {} is too small; at least 1 MiB, or 0 for no "
                                       "RAM tier",
                                       format_size(capacity)));
  }
  if (capacity > ram_capacity_max(memory)) {
    const bool by_limit = memory.limit_bytes && *memory.limit_bytes < memory.total_bytes;
    draft.complain(source,
                   fmt::format("ram.capacity: {} is larger than {} ({})", format_size(capacity),
                               by_limit ? "the limit of the memory cgroup, " + memory.limit_file
                                        : "the memory of this machine",
                               format_size(ram_capacity_max(memory))));
  } else if (capacity > memory.available_bytes && memory.available_bytes > 0) {
    draft.configuration.warnings.push_back(
        fmt::format("ram.capacity {} is more than the {} of memory available now; the kernel may "
                    "have to swap or to kill",
                    format_size(capacity), format_size(memory.available_bytes)));
  }
}

void resolve_durability(Draft& draft) {
  NodeConfig& node = draft.configuration.node;
  const size_t index = durable_tier_of(node);
  if (index == node.tiers.size()) {
    node.durable_log_bytes = 0;
    const auto needs_tier = [&](const char* option, const char* why) {
      draft.complain(draft.sources[option],
                     fmt::format("{}: {} needs a durable tier; make one with --tier "
                                 "DIR:SIZE:durable, on a local device that keeps its data",
                                 option, why));
    };
    if (draft.durability == Durability::kNode) needs_tier("durability.level", "the level node");
    if (node.checkpoint_seconds != 0) needs_tier("checkpoint.interval", "a checkpoint");
    return;
  }
  if (!draft.durability) node.durability = Durability::kNode;
  const uint64_t capacity = node.tiers[index].capacity_bytes;
  if (!draft.log_bytes) {
    node.durable_log_bytes = std::clamp(capacity / 4, uint64_t{16} << 20, uint64_t{4} << 30);
  } else {
    node.durable_log_bytes = *draft.log_bytes;
    if (*draft.log_bytes > capacity / 2) {
      draft.complain(draft.sources["durability.log_size"],
                     fmt::format("durability.log_size: {} is more than half of tier {} ({})",
                                 format_size(*draft.log_bytes), node.tiers[index].name,
                                 format_size(capacity)));
    }
  }
}

void resolve_swap(Draft& draft) {
  NodeConfig& node = draft.configuration.node;
  if (node.scratch_directories.empty()) return;
  node.swap_directory = node.scratch_directories.front();
  if (draft.swap_bytes) {
    node.swap_capacity_bytes = *draft.swap_bytes;
    return;
  }
  const Status safe = check_safe_directory(node.swap_directory);
  if (safe.code() == StatusCode::kDenied) {
    draft.configuration.warnings.push_back("scratch data gets no swap file: " + safe.message());
    return;
  }
  constexpr uint64_t kTimesTheTiers = 4;
  uint64_t tiers = node.ram_capacity_bytes;
  for (const FileTierConfig& tier : node.tiers) tiers += tier.capacity_bytes;
  const DirectoryState state = read_directory_state(node.swap_directory, draft.roots);
  node.swap_capacity_bytes = std::min(kTimesTheTiers * tiers, state.free_bytes / 2);
}

void resolve_remembered(Draft& draft) {
  std::string& directory = draft.configuration.node.remember_directory;
  const std::string text = draft.remember ? draft.remember->text : "auto";
  if (text.empty() || text == "none") return;
  if (text == "auto") {
    directory = state_directory();
    if (!directory.empty()) directory += "/orders";
    return;
  }
  directory = absolute_path(text);
  struct stat status{};
  if (::stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    draft.complain(draft.remember->source,
                   fmt::format("prefetch.remember: {} is not a directory", directory));
  }
}

}  // namespace cairn::cli
