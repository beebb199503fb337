// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/machine_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/profiler/directory_state.h"
#include "service/profiler/testing/fake_machine.h"

namespace cairn::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MachineScanTest : public testing::Test {
 protected:
  DeviceClass class_of(DeviceNumber number) {
    const auto device = read_block_device(machine_.roots(), number);
    return device ? device->device_class : DeviceClass::kUnknown;
  }

  FakeMachine machine_;
};

TEST_F(MachineScanTest, ClassifiesDisks) {
  const std::string nvme = machine_.add_disk("nvme0n1", "259:0", 800 * kGibibyte, "0");
  machine_.write(nvme + "/device/model", "Fast Disk 9   \n");
  machine_.write(nvme + "/device/serial", "S123\n");
  machine_.add_partition("nvme0n1", "nvme0n1p1", "259:1", 400 * kGibibyte);
  machine_.add_disk("sda", "8:0", 100 * kGibibyte, "0");
  machine_.add_disk("sdb", "8:16", 4000 * kGibibyte, "1");
  machine_.add_disk("pmem0", "260:0", kGibibyte, "0");
  EXPECT_EQ(class_of({259, 1}), DeviceClass::kNvme);
  EXPECT_EQ(class_of({8, 0}), DeviceClass::kSsd);
  EXPECT_EQ(class_of({8, 16}), DeviceClass::kHdd);
  EXPECT_EQ(class_of({260, 0}), DeviceClass::kNvme);
  EXPECT_FALSE(read_block_device(machine_.roots(), {9, 9}).has_value());

  const auto partition = read_block_device(machine_.roots(), {259, 1});
  EXPECT_EQ(partition->name, "nvme0n1p1");
  EXPECT_EQ(partition->disk, "nvme0n1");
  EXPECT_EQ(partition->model, "Fast Disk 9");
  EXPECT_EQ(partition->serial, "S123");
  EXPECT_EQ(partition->size_bytes, 400 * kGibibyte);
  EXPECT_EQ(partition->rotational, false);
}

TEST_F(MachineScanTest, ALoopDeviceIsOfTheClassOfWhatItLiesOn) {
  machine_.add_disk("sdb", "8:16", 100 * kGibibyte, "1");
  machine_.add_disk("nvme0n1", "259:0", 100 * kGibibyte, "0");
  machine_.add_mount("8:16", "/", "ext4", "/dev/sdb");
  machine_.add_mount("259:0", "/fast", "xfs", "/dev/nvme0n1");
  machine_.add_mount("0:25", "/dev/shm", "tmpfs", "tmpfs");
  machine_.add_mount("0:50", "/net", "nfs4", "server:/export");
  const auto add_loop = [this](const char* name, const char* number, const char* file) {
    const std::string loop = machine_.add_disk(name, number, kGibibyte, "1");
    machine_.write(loop + "/loop/backing_file", std::string(file) + "\n");
  };
  add_loop("loop0", "7:0", "/var/images/a.img");
  add_loop("loop1", "7:1", "/fast/images/b.img");
  add_loop("loop2", "7:2", "/dev/shm/c.img");
  add_loop("loop3", "7:3", "/net/d.img");
  machine_.add_mount("7:1", "/nested", "ext4", "/dev/loop1");
  add_loop("loop4", "7:4", "/nested/e.img");
  machine_.add_mount("7:5", "/own", "ext4", "/dev/loop5");
  add_loop("loop5", "7:5", "/own/impossible.img");
  EXPECT_EQ(class_of({7, 0}), DeviceClass::kHdd);
  EXPECT_EQ(class_of({7, 1}), DeviceClass::kNvme);
  EXPECT_EQ(class_of({7, 2}), DeviceClass::kNvme);
  EXPECT_EQ(class_of({7, 3}), DeviceClass::kNetwork);
  EXPECT_EQ(class_of({7, 4}), DeviceClass::kNvme);
  EXPECT_EQ(class_of({7, 5}), DeviceClass::kHdd) << "a loop in the chain must end";
}

TEST_F(MachineScanTest, ARaidIsAsSlowAsItsSlowestMember) {
  const std::string fast = machine_.add_disk("nvme0n1", "259:0", kGibibyte, "0");
  const std::string slow = machine_.add_disk("sda", "8:0", kGibibyte, "1");
  const std::string raid = machine_.add_disk("md0", "9:0", 2 * kGibibyte, "0");
  machine_.link(raid + "/slaves/nvme0n1", "../../nvme0n1");
  EXPECT_EQ(class_of({9, 0}), DeviceClass::kNvme);
  machine_.link(raid + "/slaves/sda", "../../sda");
  EXPECT_EQ(class_of({9, 0}), DeviceClass::kHdd);
}

TEST_F(MachineScanTest, ReadsMounts) {
  machine_.write("/proc/self/mountinfo",
                 "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
                 "28 27 8:1 /sub /mnt/with\\040blank rw shared:1 master:2 - xfs /dev/sda1 ro\n"
                 "29 27 0:30 / /run ro,nosuid - tmpfs  rw\n"
                 "garbage\n"
                 "30 27 x:y / /bad rw - ext4 /dev/vdb rw\n"
                 "31 27 0:31 / /short rw\n");
  const std::vector<Mount> mounts = read_mounts(machine_.roots());
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].source, "/dev/vda");
  EXPECT_EQ(mounts[0].number, (DeviceNumber{254, 0}));
  EXPECT_FALSE(mounts[0].read_only);
  EXPECT_EQ(mounts[1].point, "/mnt/with blank");
  EXPECT_TRUE(mounts[1].read_only);
  EXPECT_EQ(mounts[2].type, "tmpfs");
  EXPECT_EQ(mounts[2].source, "");
  EXPECT_TRUE(mounts[2].read_only);
}

TEST_F(MachineScanTest, FindsTheMountOfAPath) {
  const std::vector<Mount> mounts = {{.point = "/", .type = "ext4"},
                                     {.point = "/data", .type = "xfs"},
                                     {.point = "/data/run", .type = "nfs"},
                                     {.point = "/data", .type = "lustre"}};
  EXPECT_EQ(mount_of(mounts, "/home")->type, "ext4");
  EXPECT_EQ(mount_of(mounts, "/")->type, "ext4");
  EXPECT_EQ(mount_of(mounts, "/data")->type, "lustre") << "the later mount covers the earlier";
  EXPECT_EQ(mount_of(mounts, "/data/run/7")->type, "nfs");
  EXPECT_EQ(mount_of(mounts, "/data/runner")->type, "lustre");
  EXPECT_EQ(mount_of(mounts, "/database")->type, "ext4");
  EXPECT_EQ(mount_of({}, "/data"), nullptr);
}

TEST_F(MachineScanTest, KnowsFileSystemsOfNetworksAndMemory) {
  for (const char* type : {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "ceph", "glusterfs",
                           "mfs", "fuse.mfs", "fuse.sshfs", "fuse"}) {
    EXPECT_EQ(class_of_file_system(type), DeviceClass::kNetwork) << type;
  }
  for (const char* type : {"tmpfs", "ramfs", "hugetlbfs"}) {
    EXPECT_EQ(class_of_file_system(type), DeviceClass::kMemory) << type;
  }
  for (const char* type : {"ext4", "xfs", "btrfs", "overlay", "fuseblk", "fuse.fuse-overlayfs"}) {
    EXPECT_EQ(class_of_file_system(type), DeviceClass::kUnknown) << type;
  }
}

TEST_F(MachineScanTest, AFileSystemOverSeveralDevicesIsFoundByItsSource) {
  machine_.add_disk("sda", "8:0", kGibibyte, "0");
  const Mount mount = {.number = {0, 44}, .point = "/b", .type = "btrfs", .source = "/dev/sda"};
  const auto device = device_of(machine_.roots(), mount);
  ASSERT_TRUE(device.has_value());
  EXPECT_EQ(device->name, "sda");
  EXPECT_FALSE(device_of(machine_.roots(), {.number = {0, 45}, .source = "overlay"}).has_value());
}

TEST_F(MachineScanTest, FindsEverything) {
  machine_.add_disk("sdb", "8:16", kGibibyte, "1");
  machine_.add_disk("loop7", "7:7", 0, "1");
  machine_.add_disk("nvme0n1", "259:0", kGibibyte, "0");
  machine_.add_mount("259:0", "/", "ext4", "/dev/nvme0n1");
  const Machine machine = scan_machine(machine_.roots());
  EXPECT_EQ(machine.host, "node17");
  EXPECT_EQ(machine.processor, "Test Processor 9000");
  EXPECT_EQ(machine.memory_bytes, 16 * kGibibyte);
  ASSERT_EQ(machine.memory_nodes.size(), 1U) << "a kernel without NUMA";
  EXPECT_EQ(machine.memory_nodes[0].total_bytes, 16 * kGibibyte);
  ASSERT_EQ(machine.devices.size(), 2U) << "a loop device without a file is no place";
  EXPECT_EQ(machine.devices[0].name, "nvme0n1");
  EXPECT_EQ(machine.devices[1].name, "sdb");
  EXPECT_EQ(machine.mounts.size(), 1U);
}

TEST_F(MachineScanTest, ReadsNumaNodes) {
  machine_.write("/sys/devices/system/node/online", "0-1\n");
  for (const char* node : {"node0", "node1"}) {
    const std::string directory = std::string("/sys/devices/system/node/") + node;
    machine_.write(directory + "/meminfo",
                   "Node 0 MemTotal:        8388608 kB\nNode 0 MemFree:  1 kB\n");
    machine_.write(directory + "/cpulist", std::string(node) == "node0" ? "0-1,4\n" : "\n");
  }
  const Machine machine = scan_machine(machine_.roots());
  ASSERT_EQ(machine.memory_nodes.size(), 2U);
  EXPECT_EQ(machine.memory_nodes[0].total_bytes, 8 * kGibibyte);
  EXPECT_THAT(machine.memory_nodes[0].cpus, ElementsAre(0, 1, 4));
  EXPECT_EQ(machine.memory_nodes[1].id, 1U);
  EXPECT_THAT(machine.memory_nodes[1].cpus, IsEmpty()) << "memory without processors";
}

TEST_F(MachineScanTest, AnEmptyMachineHasNothing) {
  const Machine machine = scan_machine({"/nonexistent", "/nonexistent", "/nonexistent"});
  EXPECT_TRUE(machine.memory_nodes.empty());
  EXPECT_TRUE(machine.devices.empty());
  EXPECT_TRUE(machine.mounts.empty());
}

TEST(NumberList, OnlyWhatSysfsWrites) {
  EXPECT_THAT(parse_number_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_number_list("0-2,5"), ElementsAre(0, 1, 2, 5));
  for (const char* text : {"", "a", "3-1", "0-", "-1", "0-4000000000", "1,,2"}) {
    EXPECT_THAT(parse_number_list(text), IsEmpty()) << text;
  }
}

TEST(DeviceClassNames, ThereAndBack) {
  for (const DeviceClass one : {DeviceClass::kMemory, DeviceClass::kNvme, DeviceClass::kSsd,
                                DeviceClass::kHdd, DeviceClass::kNetwork, DeviceClass::kUnknown}) {
    EXPECT_EQ(class_named(class_name(one)), one);
  }
  EXPECT_FALSE(class_named("floppy").has_value());
}

TEST(DirectoryState, OfRealDirectories) {
  const DirectoryState here = read_directory_state("/");
  EXPECT_TRUE(here.is_directory);
  EXPECT_GT(here.total_bytes, 0U);
  EXPECT_FALSE(here.in_memory && here.rotational_known);
  EXPECT_FALSE(read_directory_state("/no/such/place").exists);
  EXPECT_FALSE(read_directory_state("/proc/self/status").is_directory);
}

}  // namespace
}  // namespace cairn::profiler
