// SPDX-License-Identifier: Apache-2.0
//
// Which device something was measured on, so that figures are never taken for another one's.
//
// A device number alone does not say: loop devices and disks get theirs in the order in which they
// come up. Stronger marks decide where both sides have them: the file system's UUID, then the
// disk's serial number. The host belongs to it, because a home directory with profiles in it is
// often shared by many nodes.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/profiler/machine_scan.h"

namespace cairn::profiler {

struct DeviceIdentity {
  std::string host;
  DeviceClass device_class = DeviceClass::kUnknown;
  std::string name;    // "nvme0n1p1"; "server:/export"; "ram", "ram:node1" for memory
  std::string number;  // "259:1" as the mount table says it; empty for memory
  uint64_t st_dev = 0;
  std::string model;  // of the disk; of the processor for memory
  std::string serial;
  std::string file_system;  // type
  std::string file_system_uuid;
  uint64_t size_bytes = 0;  // of the block device or the memory; 0 unknown
};

// Errors: the directory's name and what is the matter with it.
Result<DeviceIdentity> identify_directory(const std::string& directory,
                                          const MachineRoots& roots = {});

// What the mount table and sysfs say alone, without a look at the file system itself, which hangs
// when it is a network's whose server is gone: st_dev is 0.
DeviceIdentity identify_mount(const Mount& mount, const MachineRoots& roots = {});

// The memory of each NUMA node, at least one.
std::vector<DeviceIdentity> identify_memory(const Machine& machine);

// Whether figures of one hold for the other.
bool is_same_device(const DeviceIdentity& one, const DeviceIdentity& other);

}  // namespace cairn::profiler
