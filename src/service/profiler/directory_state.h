// SPDX-License-Identifier: Apache-2.0
//
// A directory as a place for data: may one write there, how much is free, and what it lies on.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <cstdint>
#include <string>

#include "service/profiler/machine_scan.h"

namespace cairn::profiler {

struct DirectoryState {
  bool exists = false;
  bool is_directory = false;
  bool writable = false;
  bool read_only_mount = false;
  bool in_memory = false;         // tmpfs, ramfs, hugetlbfs
  bool network = false;           // NFS, Lustre, FUSE, ...: not local
  bool rotational_known = false;  // the device was found under /sys/block
  bool rotational = true;
  uint64_t device = 0;      // st_dev
  std::string disk;         // "nvme0n1", empty when it is no local block device
  uint64_t free_bytes = 0;  // for this user
  uint64_t total_bytes = 0;
  std::string file_system;  // "ext4", "tmpfs", "0x1234" when unknown
};

// Whether an open file is another machine's, or a program's (FUSE).
bool is_on_network(int fd);
// A program's.
bool is_in_user_space(int fd);

DirectoryState read_directory_state(const std::string& path, const MachineRoots& roots = {});

}  // namespace cairn::profiler
