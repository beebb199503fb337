// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/tier_figures.h"

#include <gtest/gtest.h>

#include "service/profiler/testing/fake_machine.h"
#include "service/profiler/testing/sample_profile.h"

namespace cairn::profiler {
namespace {

class TierFiguresTest : public testing::Test {
 protected:
  // A directory on a disk of its own.
  std::string add_place(const char* disk, const char* number, const char* rotational) {
    const std::string place = machine_.directory(std::string("mnt/") + disk);
    machine_.add_disk(disk, number, uint64_t{1} << 30, rotational);
    machine_.add_mount(number, place, "ext4", std::string("/dev/") + disk);
    machine_.link(std::string("/dev/disk/by-uuid/uuid-") + disk, std::string("../../") + disk);
    return place;
  }

  TierFigures figures(const std::string& directory, TierKind kind = TierKind::kDirectory) {
    return figures_for(directory, kind, store_, machine_.roots());
  }

  void measured(const DeviceIdentity& identity, double bandwidth) {
    DeviceProfile profile = sample_profile("", bandwidth);
    profile.identity = identity;
    ASSERT_TRUE(store_.save(profile).is_ok());
  }

  FakeMachine machine_;
  ProfileStore store_{machine_.directory("state") + "/profiles.json"};
};

TEST_F(TierFiguresTest, WithoutAProfileAreTheClasss) {
  EXPECT_EQ(figures(add_place("sda", "8:0", "0")).source, "class default: ssd");
  EXPECT_EQ(figures(add_place("sdb", "8:16", "1")).source, "class default: hdd");
  EXPECT_EQ(figures(add_place("nvme0n1", "259:0", "0")).source, "class default: nvme");
  const std::string net = machine_.directory("net");
  machine_.add_mount("0:50", net, "lustre", "mgs@tcp:/fs");
  EXPECT_EQ(figures(net).source, "class default: network");
  EXPECT_EQ(figures("", TierKind::kMemory).source, "class default: ram");
  EXPECT_FALSE(figures(net).measured);
}

TEST_F(TierFiguresTest, AreTheMeasuredOnesOfTheVeryDevice) {
  const std::string fast = add_place("sda", "8:0", "0");
  const std::string other = add_place("sdb", "8:16", "0");
  measured(identify_directory(fast, machine_.roots()).value(), 6e8);
  const TierFigures found = figures(fast);
  EXPECT_EQ(found.source, "measured 2026-11-21");
  EXPECT_TRUE(found.measured);
  EXPECT_EQ(found.read_bandwidth, 6e8);
  EXPECT_EQ(found.write_bandwidth, 3e8);
  EXPECT_EQ(found.read_latency, 1e-4);
  EXPECT_EQ(found.write_latency, 2e-4);
  EXPECT_FALSE(figures(other).measured);
}

TEST_F(TierFiguresTest, OfADirectoryThatIsGoneAreAnUnknownDevices) {
  const TierFigures found = figures("/no/such/place");
  EXPECT_EQ(found.source, "class default: unknown");
  EXPECT_GT(found.read_bandwidth, 0);
}

TEST_F(TierFiguresTest, OfTmpfsAreTheMemorys) {
  const std::string place = machine_.directory("shm");
  machine_.add_mount("0:25", place, "tmpfs", "tmpfs");
  EXPECT_EQ(figures(place).source, "class default: ram");
  measured(identify_memory(scan_machine(machine_.roots())).front(), 9e9);
  EXPECT_EQ(figures(place).read_bandwidth, 9e9);
}

TEST_F(TierFiguresTest, OfMemoryAreTheSlowestNodes) {
  machine_.write("/sys/devices/system/node/online", "0-1\n");
  for (const char* node : {"node0", "node1"}) {
    machine_.write(std::string("/sys/devices/system/node/") + node + "/meminfo",
                   "Node 0 MemTotal: 8388608 kB\n");
  }
  const auto nodes = identify_memory(scan_machine(machine_.roots()));
  ASSERT_EQ(nodes.size(), 2U);
  measured(nodes[0], 9e9);
  EXPECT_FALSE(figures("", TierKind::kMemory).measured) << "one node of two is not known";
  measured(nodes[1], 4e9);
  EXPECT_EQ(figures("", TierKind::kMemory).read_bandwidth, 4e9);
}

TEST(ClassDefaults, OrderTheClassesAsTheHierarchyHasThem) {
  const DeviceClass order[] = {DeviceClass::kMemory, DeviceClass::kNvme, DeviceClass::kSsd,
                               DeviceClass::kHdd};
  for (size_t index = 1; index < std::size(order); ++index) {
    const ClassFigures above = class_defaults(order[index - 1]);
    const ClassFigures below = class_defaults(order[index]);
    EXPECT_GT(above.read_bandwidth, below.read_bandwidth);
    EXPECT_GT(above.write_bandwidth, below.write_bandwidth);
    EXPECT_LT(above.read_latency, below.read_latency);
    EXPECT_LT(above.write_latency, below.write_latency);
  }
  EXPECT_LT(class_defaults(DeviceClass::kNetwork).read_bandwidth,
            class_defaults(DeviceClass::kNvme).read_bandwidth);
  EXPECT_EQ(class_defaults(DeviceClass::kUnknown).write_bandwidth,
            class_defaults(DeviceClass::kHdd).write_bandwidth);
}

}  // namespace
}  // namespace cairn::profiler
