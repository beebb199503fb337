// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/size_text.h"

namespace cairn::cli {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kGibibyte = uint64_t{1} << 30;
constexpr uint64_t kFoundTierFreeBytesMin = 16 * kGibibyte;
constexpr uint64_t kFoundTierFreePercentMin = 20;
constexpr uint64_t kFoundTierCapacityMax = 256 * kGibibyte;

// Values at or above this are how the kernel writes "no limit" in cgroup version 1.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::string read_text(const std::string& path) {
  std::string text;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(descriptor);
  return text;
}

std::optional<uint64_t> read_number(const std::string& path) {
  std::string text = read_text(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return parse_count(text);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key) {
  for (const std::string_view line : split_lines(meminfo)) {
    if (line.substr(0, key.size()) != key) continue;
    std::string_view rest = line.substr(key.size());
    if (rest.size() > 3 && rest.substr(rest.size() - 3) == " kB") rest.remove_suffix(3);
    return parse_count(rest).value_or(0) * 1024;
  }
  return 0;
}

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

struct FileSystemName {
  long magic;
  const char* name;
  bool in_memory;
  bool network;
};

constexpr FileSystemName kFileSystems[] = {
    {.magic = EXT4_SUPER_MAGIC, .name = "ext4", .in_memory = false, .network = false},
    {.magic = 0x58465342, .name = "xfs", .in_memory = false, .network = false},
    {.magic = BTRFS_SUPER_MAGIC, .name = "btrfs", .in_memory = false, .network = false},
    {.magic = 0xF2F52010, .name = "f2fs", .in_memory = false, .network = false},
    {.magic = 0x2FC12FC1, .name = "zfs", .in_memory = false, .network = false},
    {.magic = OVERLAYFS_SUPER_MAGIC, .name = "overlay", .in_memory = false, .network = false},
    {.magic = TMPFS_MAGIC, .name = "tmpfs", .in_memory = true, .network = false},
    {.magic = RAMFS_MAGIC, .name = "ramfs", .in_memory = true, .network = false},
    {.magic = HUGETLBFS_MAGIC, .name = "hugetlbfs", .in_memory = true, .network = false},
    {.magic = NFS_SUPER_MAGIC, .name = "nfs", .in_memory = false, .network = true},
    {.magic = FUSE_SUPER_MAGIC, .name = "fuse", .in_memory = false, .network = true},
    {.magic = 0x0BD00BD0, .name = "lustre", .in_memory = false, .network = true},
    {.magic = 0x47504653, .name = "gpfs", .in_memory = false, .network = true},
    {.magic = 0x19830326, .name = "beegfs", .in_memory = false, .network = true},
    {.magic = CEPH_SUPER_MAGIC, .name = "ceph", .in_memory = false, .network = true},
    {.magic = static_cast<long>(0xFF534D42), .name = "cifs", .in_memory = false, .network = true},
};

// The whole disk under a device number: /sys/dev/block/MAJ:MIN resolves to .../block/sda/sda1.
// Device mapper and software RAID name their members in slaves/, which all must be non-rotational.
std::optional<bool> disk_is_rotational(const std::string& device_directory, std::string* disk) {
  std::array<char, PATH_MAX> resolved{};
  if (::realpath(device_directory.c_str(), resolved.data()) == nullptr) return std::nullopt;
  std::string directory = resolved.data();
  if (::access((directory + "/partition").c_str(), F_OK) == 0) {
    directory.resize(directory.rfind('/'));
  }
  *disk = directory.substr(directory.rfind('/') + 1);
  const auto rotational = read_number(directory + "/queue/rotational");
  if (!rotational) return std::nullopt;
  return *rotational != 0;
}

void read_disk(const MachineRoots& roots, DirectoryState* state) {
  const auto device = static_cast<dev_t>(state->device);
  const std::string link =
      fmt::format("{}/dev/block/{}:{}", roots.sys, major(device), minor(device));
  const auto rotational = disk_is_rotational(link, &state->disk);
  state->rotational_known = rotational.has_value();
  state->rotational = rotational.value_or(true);
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

DirectoryState read_directory_state(const std::string& path, const MachineRoots& roots) {
  DirectoryState state;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return state;
  state.exists = true;
  state.is_directory = S_ISDIR(status.st_mode);
  state.device = status.st_dev;
  state.writable = ::access(path.c_str(), W_OK | X_OK) == 0;
  state.read_only_mount = !state.writable && errno == EROFS;
  struct statvfs space{};
  if (::statvfs(path.c_str(), &space) == 0) {
    state.free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
    state.total_bytes = uint64_t{space.f_blocks} * space.f_frsize;
  }
  struct statfs file_system{};
  if (::statfs(path.c_str(), &file_system) == 0) {
    state.file_system = fmt::format("{:#x}", static_cast<unsigned long>(file_system.f_type));
    for (const FileSystemName& known : kFileSystems) {
      if (known.magic != static_cast<long>(file_system.f_type)) continue;
      state.file_system = known.name;
      state.in_memory = known.in_memory;
      state.network = known.network;
    }
  }
  read_disk(roots, &state);
  return state;
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
