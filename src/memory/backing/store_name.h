// SPDX-License-Identifier: Apache-2.0
// The name of a store that is the same on every node and after a reboot, from what the kernel says
// of the mounted file system.
//
//   file system                         named by
//   ext4, btrfs, Lustre, Ceph, CIFS,    the fsid of statfs(2), which comes from the UUID in the
//   ZFS and others                      superblock, or from the server; btrfs has one per subvolume
//   XFS, F2FS and others                the UUID that the kernel gives (FS_IOC_GETFSUUID), because
//                                       their fsid is the device number; none before Linux 6.9
//   NFS, MooseFS, GlusterFS, CephFS     the type and the source in the mount table, if all mounts
//   over FUSE, JuiceFS                  of the file system have one source
//   overlayfs                           none: its fsid is that of the file system below
//   tmpfs                               none: its fsid is drawn at random when it is mounted
//   all others                          none
//
// A name does not tell a copied disk image from its original, so it is no part of an ObjectKey
// (base/object_key.h).
//
// Thread safety: pure functions and system calls.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/object_key.h"

namespace cairn {

// What the kernel says of a mounted file system.
struct StoreFacts {
  static constexpr std::size_t kUuidBytesMax = 16;

  StoreId id{};
  std::uint64_t type = 0;  // f_type
  std::uint64_t fsid = 0;
  unsigned char uuid[kUuidBytesMax] = {};
  std::uint8_t uuid_bytes = 0;  // 0: it has none, or the kernel does not tell

  friend bool operator==(const StoreFacts&, const StoreFacts&) = default;
};

// Asks about the file system of an open file. On a network file system that is a message to the
// server. 0 or -errno.
int read_store_facts(int fd, StoreFacts* facts);

// Whether the name needs the type and the source of the mount table.
bool is_named_by_source(const StoreFacts& facts);

// `mount_type` and `source` as in /proc/self/mountinfo; empty where they are not known or several.
StoreName name_of(const StoreFacts& facts, std::string_view mount_type, std::string_view source);
// Asks the store of an open file for its name. kUnknown also where it is named in the mount table.
StoreName store_name_of(int fd);

}  // namespace cairn
