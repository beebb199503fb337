// SPDX-License-Identifier: Apache-2.0
//
// The places of a node that can hold data: memory, block devices by class, and what is mounted.
//
// Sources: /proc/self/mountinfo (proc_pid_mountinfo(5)), /sys/dev/block, /sys/class/block (the
// kernel's Documentation/ABI/stable/sysfs-block) and /sys/devices/system/node.
//
// Thread safety: pure reads of the system. Ownership: results are values. Errors: what the system
// does not tell is empty, 0 or kUnknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/profiler/system_text.h"

namespace cairn::profiler {

// From fast to slow, as far as a class says it.
enum class DeviceClass : uint8_t { kMemory, kNvme, kSsd, kHdd, kNetwork, kUnknown };

// "ram", "nvme", "ssd", "hdd", "network", "unknown".
std::string_view class_name(DeviceClass device_class);
std::optional<DeviceClass> class_named(std::string_view name);

struct DeviceNumber {
  uint32_t major = 0;
  uint32_t minor = 0;
  friend bool operator==(const DeviceNumber&, const DeviceNumber&) = default;
};

struct Mount {
  DeviceNumber number;  // major 0: no block device of its own
  std::string point;    // where it is mounted
  std::string type;     // "ext4", "fuse.mfs"
  std::string source;   // "/dev/nvme0n1p1", "server:/export"
  bool read_only = false;
};

// A disk, a partition of one, a loop device, a device-mapper or software RAID device.
struct BlockDevice {
  std::string name;  // "nvme0n1p1"
  std::string disk;  // the whole disk: "nvme0n1"; equal to the name for what is no partition
  DeviceNumber number;
  DeviceClass device_class = DeviceClass::kUnknown;
  uint64_t size_bytes = 0;
  std::optional<bool> rotational;  // as its queue says
  std::string model;
  std::string serial;        // or the world-wide identifier
  std::string backing_file;  // of a loop device
};

struct MemoryNode {
  unsigned id = 0;
  uint64_t total_bytes = 0;
  std::vector<unsigned> cpus;
};

struct Machine {
  std::string host;
  std::string processor;  // its model, which the memory's rates depend on
  uint64_t memory_bytes = 0;
  std::vector<MemoryNode> memory_nodes;  // one that holds everything where there is no NUMA
  std::vector<BlockDevice> devices;      // whole disks and partitions with a size, by name
  std::vector<Mount> mounts;             // in the order of mounting
};

Machine scan_machine(const MachineRoots& roots = {});

std::vector<Mount> read_mounts(const MachineRoots& roots);

// Nothing where the number is no block device's.
std::optional<BlockDevice> read_block_device(const MachineRoots& roots, DeviceNumber number);

// The mount that an absolute path without symbolic links lies on: of the longest mount points that
// are prefixes of it, the one mounted last. Null when there is none.
const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);

// The block device of a mount. File systems that span several devices (btrfs) have a number of
// their own and name one device as the source.
std::optional<BlockDevice> device_of(const MachineRoots& roots, const Mount& mount);

// What the type of a file system alone says: kMemory, kNetwork, or kUnknown for what lies on a
// block device, or nowhere.
DeviceClass class_of_file_system(std::string_view type);

// The list that sysfs writes: "0-3,8" is 0 1 2 3 8. Empty when it is malformed.
std::vector<unsigned> parse_number_list(std::string_view text);

}  // namespace cairn::profiler
