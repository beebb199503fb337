// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/device_identity.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

namespace cairn::profiler {
namespace {

// Virtual machines are given and taken memory while they run, which does not make it slower.
constexpr uint64_t kMemoryTolerance = 2;

// FS_IOC_GETFSUUID (Linux 6.9, include/uapi/linux/fs.h), for machines without udev.
struct FileSystemUuid {
  uint8_t length;
  std::array<uint8_t, 16> bytes;
};
constexpr unsigned long kGetFileSystemUuid = _IOR(0x15, 0, FileSystemUuid);

std::string uuid_by_ioctl(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};
  FileSystemUuid uuid{};
  const int result = ::ioctl(descriptor, kGetFileSystemUuid, &uuid);
  ::close(descriptor);
  if (result != 0 || uuid.length != uuid.bytes.size()) return {};
  std::string text;
  for (size_t index = 0; index < uuid.bytes.size(); ++index) {
    if (index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[index]);
  }
  return text;
}

// udev's links: /dev/disk/by-uuid/UUID -> ../../nvme0n1p1.
std::string uuid_by_link(const MachineRoots& roots, const std::string& device) {
  const std::string base = roots.dev + "/disk/by-uuid";
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(base.c_str()), ::closedir);
  if (stream == nullptr || device.empty()) return {};
  while (const dirent* entry = ::readdir(stream.get())) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length =
        ::readlink((base + "/" + entry->d_name).c_str(), target.data(), target.size() - 1);
    if (length <= 0) continue;
    const std::string_view path(target.data(), static_cast<size_t>(length));
    if (path.substr(path.rfind('/') + 1) == device) return entry->d_name;
  }
  return {};
}

bool both_known_and_equal(const std::string& one, const std::string& other) {
  return !one.empty() && one == other;
}

}  // namespace

Result<DeviceIdentity> identify_directory(const std::string& directory, const MachineRoots& roots) {
  std::array<char, PATH_MAX> path{};
  struct stat status{};
  if (::realpath(directory.c_str(), path.data()) == nullptr || ::stat(path.data(), &status) != 0) {
    return Status::from_errno(errno, directory);
  }
  const std::vector<Mount> mounts = read_mounts(roots);
  const Mount* mount = mount_of(mounts, path.data());
  if (mount == nullptr) {
    return Status(StatusCode::kNotFound,
                  directory + ": is on no mount that " + roots.proc + "/self/mountinfo lists");
  }
  DeviceIdentity identity = identify_mount(*mount, roots);
  identity.st_dev = status.st_dev;
  if (identity.file_system_uuid.empty()) identity.file_system_uuid = uuid_by_ioctl(path.data());
  return identity;
}

DeviceIdentity identify_mount(const Mount& mount, const MachineRoots& roots) {
  DeviceIdentity identity;
  identity.host = read_line(roots.proc + "/sys/kernel/hostname");
  identity.device_class = class_of_file_system(mount.type);
  identity.name = mount.source;
  identity.number = fmt::format("{}:{}", mount.number.major, mount.number.minor);
  identity.file_system = mount.type;
  const auto device = device_of(roots, mount);
  if (!device) return identity;
  identity.name = device->name;
  identity.model = device->model;
  identity.serial = device->serial;
  identity.size_bytes = device->size_bytes;
  if (identity.device_class == DeviceClass::kUnknown) identity.device_class = device->device_class;
  identity.file_system_uuid = uuid_by_link(roots, device->name);
  return identity;
}

std::vector<DeviceIdentity> identify_memory(const Machine& machine) {
  std::vector<DeviceIdentity> identities;
  for (const MemoryNode& node : machine.memory_nodes) {
    DeviceIdentity identity;
    identity.host = machine.host;
    identity.device_class = DeviceClass::kMemory;
    identity.name =
        machine.memory_nodes.size() == 1 ? std::string("ram") : fmt::format("ram:node{}", node.id);
    identity.model = machine.processor;
    identity.size_bytes = node.total_bytes;
    identities.push_back(identity);
  }
  return identities;
}

bool is_same_device(const DeviceIdentity& one, const DeviceIdentity& other) {
  if (one.host != other.host || one.device_class != other.device_class) return false;
  if (one.device_class == DeviceClass::kMemory && one.number.empty()) {
    const auto [less, more] = std::minmax(one.size_bytes, other.size_bytes);
    return one.name == other.name && one.model == other.model && less >= more / kMemoryTolerance;
  }
  // A network file system has another device number for each mount.
  if (one.device_class == DeviceClass::kNetwork) {
    return one.name == other.name && one.file_system == other.file_system;
  }
  if (one.size_bytes != other.size_bytes || one.file_system != other.file_system) return false;
  if (!one.file_system_uuid.empty() && !other.file_system_uuid.empty()) {
    return one.file_system_uuid == other.file_system_uuid;
  }
  if (!one.serial.empty() || !other.serial.empty()) {
    return both_known_and_equal(one.serial, other.serial) && one.name == other.name;
  }
  return one.name == other.name && one.number == other.number && one.model == other.model;
}

}  // namespace cairn::profiler
