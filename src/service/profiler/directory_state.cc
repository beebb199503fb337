// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/directory_state.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cairn::profiler {
namespace {

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

const FileSystemName* find_file_system(long magic) {
  const auto* const found =
      std::find_if(std::begin(kFileSystems), std::end(kFileSystems),
                   [magic](const FileSystemName& known) { return known.magic == magic; });
  return found == std::end(kFileSystems) ? nullptr : found;
}

void read_disk(const MachineRoots& roots, DirectoryState* state) {
  const auto number = static_cast<dev_t>(state->device);
  const auto device = read_block_device(roots, {major(number), minor(number)});
  if (!device) return;
  state->disk = device->disk;
  state->rotational_known = device->rotational.has_value();
  state->rotational = device->rotational.value_or(true);
}

// Its number; 0 is nobody's.
long file_system_of(int fd) {
  struct statfs file_system{};
  return ::fstatfs(fd, &file_system) == 0 ? static_cast<long>(file_system.f_type) : 0;
}

}  // namespace

bool is_on_network(int fd) {
  const FileSystemName* known = find_file_system(file_system_of(fd));
  return known != nullptr && known->network;
}

bool is_in_user_space(int fd) { return file_system_of(fd) == FUSE_SUPER_MAGIC; }

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
    if (const FileSystemName* known = find_file_system(static_cast<long>(file_system.f_type))) {
      state.file_system = known->name;
      state.in_memory = known->in_memory;
      state.network = known->network;
    }
  }
  read_disk(roots, &state);
  return state;
}

}  // namespace cairn::profiler
