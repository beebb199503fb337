// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/machine.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/private_file.h"
#include "base/size_text.h"
#include "service/profiler/system_text.h"

namespace cairn::cli {
namespace {

using profiler::meminfo_bytes;
using profiler::read_number;
using profiler::read_text;
using profiler::split_lines;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kGibibyte = uint64_t{1} << 30;
constexpr uint64_t kFoundTierFreeBytesMin = 16 * kGibibyte;
constexpr uint64_t kFoundTierFreePercentMin = 20;
constexpr uint64_t kFoundTierCapacityMax = 256 * kGibibyte;

// Values at or above this are how the kernel writes "no limit" in cgroup version 1.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// One limit file with the usage beside it, and all its ancestors up to the mount point.
void take_tightest_limit(const std::string& mount, std::string group, const char* limit_name,
                         const char* usage_name, MemoryState* memory) {
  while (true) {
    const std::string directory = mount + group;
    const auto limit = read_number(directory + "/" + limit_name);
    if (limit && *limit < kNoLimit) {
      const uint64_t used = read_number(directory + "/" + usage_name).value_or(0);
      const uint64_t left = *limit > used ? *limit - used : 0;
      if (!memory->limit_left_bytes || left < *memory->limit_left_bytes) {
        memory->limit_left_bytes = left;
      }
      if (!memory->limit_bytes || *limit < *memory->limit_bytes) {
        memory->limit_bytes = limit;
        memory->limit_file = directory + "/" + limit_name;
      }
    }
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(comma == std::string_view::npos ? controllers.size() : comma + 1);
  }
  return false;
}

void read_cgroup_limits(const MachineRoots& roots, MemoryState* memory) {
  // Lines are "hierarchy:controllers:path"; version 2 has hierarchy 0 and no controllers.
  const std::string groups = read_text(roots.proc + "/self/cgroup");
  for (const std::string_view line : split_lines(groups)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    const std::string mount = roots.sys + "/fs/cgroup";
    if (controllers.empty()) {
      take_tightest_limit(mount, path, "memory.max", "memory.current", memory);
      take_tightest_limit(mount + "/unified", path, "memory.max", "memory.current", memory);
    } else if (has_controller(controllers, "memory")) {
      take_tightest_limit(mount + "/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes",
                          memory);
    }
  }
}

}  // namespace

MemoryState read_memory_state(const MachineRoots& roots) {
  MemoryState memory;
  const std::string meminfo = read_text(roots.proc + "/meminfo");
  memory.total_bytes = meminfo_bytes(meminfo, "MemTotal:");
  memory.available_bytes = meminfo_bytes(meminfo, "MemAvailable:");
  read_cgroup_limits(roots, &memory);
  return memory;
}

uint64_t default_ram_capacity(const MemoryState& memory) {
  uint64_t available = memory.available_bytes;
  if (memory.limit_left_bytes) available = std::min(available, *memory.limit_left_bytes);
  return available / 4 / kMebibyte * kMebibyte;
}

uint64_t ram_capacity_max(const MemoryState& memory) {
  return std::min(memory.total_bytes, memory.limit_bytes.value_or(memory.total_bytes));
}

std::optional<FoundTier> find_file_tier(const std::vector<std::string>& candidates,
                                        const std::vector<std::string>& buffered_directories,
                                        const MachineRoots& roots) {
  std::vector<DirectoryState> buffered;
  for (const std::string& directory : buffered_directories) {
    buffered.push_back(read_directory_state(directory, roots));
  }
  for (const std::string& candidate : candidates) {
    const DirectoryState state = read_directory_state(candidate, roots);
    if (!state.is_directory || !state.writable || state.in_memory || state.network) continue;
    if (!check_safe_directory(candidate)) continue;
    if (!state.rotational_known || state.rotational) continue;
    if (state.free_bytes < kFoundTierFreeBytesMin) continue;
    if (state.free_bytes < state.total_bytes / 100 * kFoundTierFreePercentMin) continue;
    // A tier on the disk that is being buffered would only make the same disk write everything
    // twice.
    const bool same_disk = std::any_of(buffered.begin(), buffered.end(), [&](const auto& other) {
      return other.device == state.device || (!other.disk.empty() && other.disk == state.disk);
    });
    if (same_disk) continue;
    FoundTier found;
    found.directory = candidate;
    found.capacity_bytes =
        std::min(state.free_bytes / 2, kFoundTierCapacityMax) / kGibibyte * kGibibyte;
    found.reason =
        fmt::format("non-rotational disk {}, {} free", state.disk, format_size(state.free_bytes));
    return found;
  }
  return std::nullopt;
}

std::vector<std::string> tier_directory_candidates() {
  std::vector<std::string> candidates;
  const auto add = [&candidates](const char* path) {
    std::array<char, PATH_MAX> resolved{};
    if (path == nullptr || ::realpath(path, resolved.data()) == nullptr) return;
    candidates.emplace_back(resolved.data());
  };
  add(std::getenv("CAIRN_TIER_DIR"));
  add("/local");
  add("/scratch/local");
  glob_t matches{};
  if (::glob("/mnt/nvme*", 0, nullptr, &matches) == 0) {
    for (size_t index = 0; index < matches.gl_pathc; ++index) add(matches.gl_pathv[index]);
  }
  ::globfree(&matches);
  add(std::getenv("TMPDIR"));
  add("/var/tmp");
  return candidates;
}

}  // namespace cairn::cli
