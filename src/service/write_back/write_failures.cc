// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/write_failures.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace cairn::node {
namespace {

constexpr std::uint32_t kXfsMagic = 0x58465342;  // of linux/fs/xfs, in no header
// They write through the kernel's page cache, which notes each failure for all of the file system
// (mapping_set_error). FUSE's servers answer for themselves.
constexpr std::array<std::uint32_t, 6> kTelling = {EXT4_SUPER_MAGIC, kXfsMagic,   BTRFS_SUPER_MAGIC,
                                                   F2FS_SUPER_MAGIC, TMPFS_MAGIC, NFS_SUPER_MAGIC};

}  // namespace

bool has_lost_nothing(int fd) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return false;
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  return std::find(kTelling.begin(), kTelling.end(), magic) != kTelling.end() && ::syncfs(fd) == 0;
}

}  // namespace cairn::node
