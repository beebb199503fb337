// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/machine_scan.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <memory>

#include "base/size_text.h"

namespace cairn::profiler {
namespace {

constexpr uint64_t kSectorBytes = 512;  // the unit of sysfs, whatever the device's own is
// A loop device on a file on a loop device, and so on.
constexpr unsigned kNestingMax = 8;
constexpr unsigned kListEntriesMax = 1 << 16;

constexpr std::array<std::string_view, 6> kClassNames = {"ram", "nvme",    "ssd",
                                                         "hdd", "network", "unknown"};

constexpr std::string_view kMemoryFileSystems[] = {"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"};

// All of fuse.* but those named below counts as network, too.
constexpr std::string_view kNetworkFileSystems[] = {
    "nfs",   "nfs4",   "lustre", "gpfs",  "beegfs",    "cifs", "smb3",     "smbfs",
    "ceph",  "fuse",   "9p",     "afs",   "glusterfs", "mfs",  "orangefs", "pvfs2",
    "panfs", "wekafs", "coda",   "ocfs2", "gfs2",      "dvs",  "virtiofs", "quobyte"};

// User-space file systems over a local directory or device.
constexpr std::string_view kLocalFuseFileSystems[] = {"fuse.fuse-overlayfs", "fuse.ntfs-3g",
                                                      "fuse.ext2fs", "fuse.bindfs"};

template <typename List>
bool contains(const List& list, std::string_view wanted) {
  return std::find(std::begin(list), std::end(list), wanted) != std::end(list);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string resolved(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  return ::realpath(path.c_str(), text.data()) == nullptr ? std::string() : text.data();
}

std::optional<unsigned> parse_unsigned(std::string_view text) {
  unsigned value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<DeviceNumber> parse_device_number(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto major = parse_unsigned(text.substr(0, colon));
  const auto minor = parse_unsigned(text.substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  return DeviceNumber{*major, *minor};
}

// mountinfo writes blank, tab, newline and backslash as \ooo.
std::string without_escapes(std::string_view text) {
  std::string plain;
  const auto is_octal = [](char letter) { return letter >= '0' && letter <= '7'; };
  for (size_t index = 0; index < text.size(); ++index) {
    if (text[index] == '\\' && index + 3 < text.size() && is_octal(text[index + 1]) &&
        is_octal(text[index + 2]) && is_octal(text[index + 3])) {
      plain += static_cast<char>((text[index + 1] - '0') * 64 + (text[index + 2] - '0') * 8 +
                                 (text[index + 3] - '0'));
      index += 3;
    } else {
      plain += text[index];
    }
  }
  return plain;
}

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    const size_t comma = std::min(options.find(','), options.size());
    if (options.substr(0, comma) == wanted) return true;
    options.remove_prefix(std::min(comma + 1, options.size()));
  }
  return false;
}

// "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard": any number of fields may stand
// before the dash.
std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = split_fields(line);
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 2) return std::nullopt;
  const auto number = parse_device_number(fields[2]);
  if (!number) return std::nullopt;
  Mount mount;
  mount.number = *number;
  mount.point = without_escapes(fields[4]);
  mount.read_only = has_option(fields[5], "ro");
  mount.type = dash[1];
  // A source may be the empty text, which leaves one field less.
  if (fields.end() - dash > 3) mount.source = without_escapes(dash[2]);
  mount.read_only |= has_option(fields.back(), "ro");
  return mount;
}

// Classifies block devices, which may stand upon each other.
class BlockDeviceReader {
 public:
  explicit BlockDeviceReader(const MachineRoots& roots) : roots_(roots) {}

  // `directory`: the device's own in sysfs, without symbolic links.
  BlockDevice read(const std::string& directory, unsigned nesting) {
    BlockDevice device;
    device.name = directory.substr(directory.rfind('/') + 1);
    std::string disk = directory;
    if (::access((directory + "/partition").c_str(), F_OK) == 0) disk.resize(disk.rfind('/'));
    device.disk = disk.substr(disk.rfind('/') + 1);
    device.number = parse_device_number(read_line(directory + "/dev")).value_or(DeviceNumber{});
    device.size_bytes = read_number(directory + "/size").value_or(0) * kSectorBytes;
    if (const auto rotational = read_number(disk + "/queue/rotational")) {
      device.rotational = *rotational != 0;
    }
    device.model = read_line(disk + "/device/model");
    for (const char* name :
         {"/serial", "/device/serial", "/wwid", "/device/wwid", "/dm/uuid", "/md/uuid"}) {
      if (device.serial.empty()) device.serial = read_line(disk + name);
    }
    device.backing_file = read_line(disk + "/loop/backing_file");
    device.device_class = class_of(device, disk, nesting);
    return device;
  }

 private:
  DeviceClass class_of(const BlockDevice& device, const std::string& disk, unsigned nesting) {
    if (nesting < kNestingMax) {
      if (const auto below = class_below(device, disk, nesting)) return *below;
    }
    const std::string& name = device.disk;
    // A block device in memory is no slower than the fastest disks, but not memory itself: each
    // access goes through the block layer.
    for (const std::string_view prefix : {"nvme", "pmem", "ram", "zram"}) {
      if (name.compare(0, prefix.size(), prefix) == 0) return DeviceClass::kNvme;
    }
    if (!device.rotational) return DeviceClass::kUnknown;
    return *device.rotational ? DeviceClass::kHdd : DeviceClass::kSsd;
  }

  // A device that stands on others has the class of the slowest of them.
  std::optional<DeviceClass> class_below(const BlockDevice& device, const std::string& disk,
                                         unsigned nesting) {
    std::optional<DeviceClass> slowest;
    for (const std::string& slave : names_in(disk + "/slaves")) {
      const std::string directory = resolved(disk + "/slaves/" + slave);
      if (directory.empty()) continue;
      const DeviceClass one = read(directory, nesting + 1).device_class;
      if (!slowest || one > *slowest) slowest = one;
    }
    if (slowest) return slowest;
    if (device.backing_file.empty()) return std::nullopt;
    if (mounts_.empty()) mounts_ = read_mounts(roots_);
    const Mount* mount = mount_of(mounts_, device.backing_file);
    if (mount == nullptr) return std::nullopt;
    const DeviceClass of_type = class_of_file_system(mount->type);
    if (of_type == DeviceClass::kMemory) return DeviceClass::kNvme;
    if (of_type == DeviceClass::kNetwork) return of_type;
    const std::string directory = directory_of(*mount);
    if (directory.empty()) return std::nullopt;
    return read(directory, nesting + 1).device_class;
  }

 public:
  // The device's directory in sysfs, empty when the mount has no block device.
  std::string directory_of(const Mount& mount) const {
    const std::string by_number = roots_.sys + "/dev/block/" + std::to_string(mount.number.major) +
                                  ":" + std::to_string(mount.number.minor);
    std::string directory = resolved(by_number);
    if (!directory.empty() || mount.source.compare(0, 5, "/dev/") != 0) return directory;
    const std::string node = mount.source.substr(mount.source.rfind('/') + 1);
    return node.empty() ? node : resolved(roots_.sys + "/class/block/" + node);
  }

 private:
  const MachineRoots& roots_;
  std::vector<Mount> mounts_;
};

std::vector<MemoryNode> read_memory_nodes(const MachineRoots& roots, uint64_t memory_bytes) {
  const std::string base = roots.sys + "/devices/system/node";
  std::vector<MemoryNode> nodes;
  for (const unsigned id : parse_number_list(read_line(base + "/online"))) {
    const std::string directory = base + "/node" + std::to_string(id);
    MemoryNode node;
    node.id = id;
    node.total_bytes = meminfo_bytes(read_text(directory + "/meminfo"), "MemTotal:");
    node.cpus = parse_number_list(read_line(directory + "/cpulist"));
    if (node.total_bytes > 0) nodes.push_back(node);
  }
  if (nodes.empty() && memory_bytes > 0) nodes.push_back({.id = 0, .total_bytes = memory_bytes});
  return nodes;
}

std::string processor_model(const MachineRoots& roots) {
  const std::string text = read_text(roots.proc + "/cpuinfo", 4096);
  for (const std::string_view line : split_lines(text)) {
    const size_t colon = line.find(": ");
    if (line.compare(0, 10, "model name") == 0 && colon != std::string_view::npos) {
      return std::string(line.substr(colon + 2));
    }
  }
  return {};
}

}  // namespace

std::string_view class_name(DeviceClass device_class) {
  return kClassNames[static_cast<size_t>(device_class)];
}

std::optional<DeviceClass> class_named(std::string_view name) {
  for (size_t index = 0; index < kClassNames.size(); ++index) {
    if (kClassNames[index] == name) return static_cast<DeviceClass>(index);
  }
  return std::nullopt;
}

DeviceClass class_of_file_system(std::string_view type) {
  if (contains(kMemoryFileSystems, type)) return DeviceClass::kMemory;
  if (contains(kNetworkFileSystems, type)) return DeviceClass::kNetwork;
  const bool is_fuse = type.compare(0, 5, "fuse.") == 0;
  return is_fuse && !contains(kLocalFuseFileSystems, type) ? DeviceClass::kNetwork
                                                           : DeviceClass::kUnknown;
}

std::vector<unsigned> parse_number_list(std::string_view text) {
  std::vector<unsigned> numbers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = parse_unsigned(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_unsigned(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kListEntriesMax ||
        numbers.size() >= kListEntriesMax) {
      return {};
    }
    for (unsigned number = *first; number <= *last; ++number) numbers.push_back(number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

std::vector<Mount> read_mounts(const MachineRoots& roots) {
  std::vector<Mount> mounts;
  const std::string text = read_text(roots.proc + "/self/mountinfo");
  for (const std::string_view line : split_lines(text)) {
    if (auto mount = parse_mount(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    const std::string& point = mount.point;
    const bool is_below = path.compare(0, point.size(), point) == 0 &&
                          (point == "/" || path.size() == point.size() ||
                           (path.size() > point.size() && path[point.size()] == '/'));
    if (!is_below || point.empty()) continue;
    if (found == nullptr || point.size() >= found->point.size()) found = &mount;
  }
  return found;
}

std::optional<BlockDevice> read_block_device(const MachineRoots& roots, DeviceNumber number) {
  return device_of(roots, Mount{.number = number});
}

std::optional<BlockDevice> device_of(const MachineRoots& roots, const Mount& mount) {
  BlockDeviceReader reader(roots);
  const std::string directory = reader.directory_of(mount);
  if (directory.empty()) return std::nullopt;
  return reader.read(directory, 0);
}

Machine scan_machine(const MachineRoots& roots) {
  Machine machine;
  machine.host = read_line(roots.proc + "/sys/kernel/hostname");
  machine.processor = processor_model(roots);
  machine.memory_bytes = meminfo_bytes(read_text(roots.proc + "/meminfo"), "MemTotal:");
  machine.memory_nodes = read_memory_nodes(roots, machine.memory_bytes);
  machine.mounts = read_mounts(roots);
  BlockDeviceReader reader(roots);
  for (const std::string& name : names_in(roots.sys + "/class/block")) {
    const std::string directory = resolved(roots.sys + "/class/block/" + name);
    if (directory.empty()) continue;
    BlockDevice device = reader.read(directory, 0);
    // Loop devices that nothing is attached to have no size.
    if (device.size_bytes > 0) machine.devices.push_back(std::move(device));
  }
  return machine;
}

}  // namespace cairn::profiler
