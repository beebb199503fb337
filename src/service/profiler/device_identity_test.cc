// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/device_identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "service/profiler/testing/fake_machine.h"

namespace cairn::profiler {
namespace {

DeviceIdentity local_disk() {
  return {.host = "node17",
          .device_class = DeviceClass::kSsd,
          .name = "sda1",
          .number = "8:1",
          .st_dev = 2049,
          .model = "Disk 9",
          .serial = "S1",
          .file_system = "ext4",
          .file_system_uuid = "aaaa",
          .size_bytes = kGibibyte};
}

TEST(IsSameDevice, TheFileSystemsUuidDecides) {
  const DeviceIdentity one = local_disk();
  DeviceIdentity other = one;
  EXPECT_TRUE(is_same_device(one, other));
  other.name = "sdb1";
  other.number = "8:17";
  EXPECT_TRUE(is_same_device(one, other)) << "disks change their names from boot to boot";
  other.file_system_uuid = "bbbb";
  EXPECT_FALSE(is_same_device(one, other));
}

TEST(IsSameDevice, ThenTheSerialNumberAndTheName) {
  DeviceIdentity one = local_disk();
  one.file_system_uuid.clear();
  DeviceIdentity other = local_disk();
  other.number = "8:33";
  EXPECT_TRUE(is_same_device(one, other));
  other.serial = "S2";
  EXPECT_FALSE(is_same_device(one, other));
  other.serial.clear();
  EXPECT_FALSE(is_same_device(one, other));
}

TEST(IsSameDevice, ThenNumberNameModelAndSize) {
  DeviceIdentity one = local_disk();
  one.file_system_uuid.clear();
  one.serial.clear();
  EXPECT_TRUE(is_same_device(one, one));
  const auto differs = [&one](auto change) {
    DeviceIdentity other = one;
    change(&other);
    return !is_same_device(one, other) && !is_same_device(other, one);
  };
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->number = "8:2"; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->name = "sda2"; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->model = "Disk 10"; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->size_bytes *= 2; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->file_system = "xfs"; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->host = "node18"; }));
  EXPECT_TRUE(differs([](DeviceIdentity* other) { other->device_class = DeviceClass::kHdd; }));
}

TEST(IsSameDevice, ANetworkFileSystemIsItsSource) {
  DeviceIdentity one = {.host = "node17",
                        .device_class = DeviceClass::kNetwork,
                        .name = "server:/export",
                        .number = "0:50",
                        .file_system = "nfs4"};
  DeviceIdentity other = one;
  other.number = "0:61";
  EXPECT_TRUE(is_same_device(one, other));
  other.name = "server:/other";
  EXPECT_FALSE(is_same_device(one, other));
}

TEST(IsSameDevice, MemoryMayGrowAndShrink) {
  Machine machine;
  machine.host = "node17";
  machine.processor = "P";
  machine.memory_nodes = {{.id = 0, .total_bytes = 16 * kGibibyte}};
  const DeviceIdentity one = identify_memory(machine).front();
  EXPECT_EQ(one.name, "ram");
  DeviceIdentity other = one;
  other.size_bytes = 9 * kGibibyte;
  EXPECT_TRUE(is_same_device(one, other));
  other.size_bytes = 33 * kGibibyte;
  EXPECT_FALSE(is_same_device(one, other));
  other = one;
  other.model = "Q";
  EXPECT_FALSE(is_same_device(one, other));
  machine.memory_nodes.push_back({.id = 1, .total_bytes = 16 * kGibibyte});
  const auto both = identify_memory(machine);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].name, "ram:node1");
  EXPECT_FALSE(is_same_device(both[0], both[1]));
}

TEST(IdentifyDirectory, FromMountsAndSysfs) {
  FakeMachine machine;
  const std::string place = machine.directory("mnt/scratch/job");
  const std::string mount = place.substr(0, place.rfind('/'));
  const std::string disk = machine.add_disk("nvme0n1", "259:0", 800 * kGibibyte, "0");
  machine.write(disk + "/device/model", "Fast\n");
  machine.write(disk + "/device/serial", "S9\n");
  machine.add_partition("nvme0n1", "nvme0n1p1", "259:1", 400 * kGibibyte);
  machine.add_mount("259:1", mount, "xfs", "/dev/nvme0n1p1");
  machine.link("/dev/disk/by-uuid/0000-other", "../../nvme0n1p2");
  machine.link("/dev/disk/by-uuid/1234-uuid", "../../nvme0n1p1");
  const auto identity = identify_directory(place, machine.roots());
  ASSERT_TRUE(identity.is_ok()) << identity.status().message();
  EXPECT_EQ(identity.value().host, "node17");
  EXPECT_EQ(identity.value().device_class, DeviceClass::kNvme);
  EXPECT_EQ(identity.value().name, "nvme0n1p1");
  EXPECT_EQ(identity.value().number, "259:1");
  EXPECT_EQ(identity.value().model, "Fast");
  EXPECT_EQ(identity.value().serial, "S9");
  EXPECT_EQ(identity.value().file_system, "xfs");
  EXPECT_EQ(identity.value().file_system_uuid, "1234-uuid");
  EXPECT_EQ(identity.value().size_bytes, 400 * kGibibyte);
  struct stat status{};
  ASSERT_EQ(::stat(place.c_str(), &status), 0);
  EXPECT_EQ(identity.value().st_dev, status.st_dev);
}

TEST(IdentifyDirectory, OfANetworkFileSystem) {
  FakeMachine machine;
  const std::string place = machine.directory("net");
  machine.add_mount("0:50", place, "fuse.mfs", "master:9421");
  const auto identity = identify_directory(place, machine.roots());
  ASSERT_TRUE(identity.is_ok());
  EXPECT_EQ(identity.value().device_class, DeviceClass::kNetwork);
  EXPECT_EQ(identity.value().name, "master:9421");
  EXPECT_EQ(identity.value().size_bytes, 0U);
}

TEST(IdentifyDirectory, ThatIsGoneOrOnNoMount) {
  FakeMachine machine;
  const auto gone = identify_directory("/no/such/place", machine.roots());
  EXPECT_EQ(gone.status().code(), StatusCode::kNotFound);
  EXPECT_NE(gone.status().message().find("/no/such/place"), std::string::npos);
  EXPECT_FALSE(identify_directory(machine.directory("somewhere"), machine.roots()).is_ok());
}

TEST(IdentifyDirectory, OnThisMachine) {
  const auto identity = identify_directory("/");
  ASSERT_TRUE(identity.is_ok()) << identity.status().message();
  EXPECT_FALSE(identity.value().host.empty());
  EXPECT_FALSE(identity.value().file_system.empty());
  EXPECT_TRUE(is_same_device(identity.value(), identify_directory("/").value()));
}

}  // namespace
}  // namespace cairn::profiler
