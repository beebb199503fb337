// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/testing/fake_machine.h"

#include <stdlib.h>

#include <array>
#include <climits>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace cairn::profiler {

namespace fs = std::filesystem;

FakeMachine::FakeMachine() {
  const char* place = std::getenv("TEST_TMPDIR");
  std::string name = std::string(place != nullptr ? place : "/tmp") + "/cairn-machine-XXXXXX";
  std::array<char, PATH_MAX> resolved{};
  if (::mkdtemp(name.data()) == nullptr || ::realpath(name.c_str(), resolved.data()) == nullptr) {
    throw std::runtime_error("no temporary directory");
  }
  root_ = resolved.data();
  roots_ = {root_ + "/proc", root_ + "/sys", root_ + "/dev"};
  write("/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Test Processor 9000\n");
  write("/proc/sys/kernel/hostname", "node17\n");
  write("/proc/self/mountinfo", "");
}

FakeMachine::~FakeMachine() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string FakeMachine::directory(const std::string& name) const {
  fs::create_directories(root_ + "/" + name);
  return root_ + "/" + name;
}

void FakeMachine::write(const std::string& path, const std::string& text) const {
  fs::create_directories(fs::path(root_ + path).parent_path());
  std::ofstream(root_ + path) << text;
}

void FakeMachine::link(const std::string& path, const std::string& target) const {
  fs::create_directories(fs::path(root_ + path).parent_path());
  fs::create_symlink(target, root_ + path);
}

void FakeMachine::add_device(const std::string& directory, const std::string& number,
                             uint64_t bytes) const {
  const std::string name = directory.substr(directory.rfind('/') + 1);
  write(directory + "/dev", number + "\n");
  write(directory + "/size", std::to_string(bytes / 512) + "\n");
  link("/sys/dev/block/" + number, root_ + directory);
  link("/sys/class/block/" + name, root_ + directory);
}

std::string FakeMachine::add_disk(const std::string& name, const std::string& number,
                                  uint64_t bytes, const char* rotational) const {
  const std::string directory = "/sys/devices/block/" + name;
  add_device(directory, number, bytes);
  write(directory + "/queue/rotational", std::string(rotational) + "\n");
  return directory;
}

std::string FakeMachine::add_partition(const std::string& disk, const std::string& name,
                                       const std::string& number, uint64_t bytes) const {
  const std::string directory = "/sys/devices/block/" + disk + "/" + name;
  add_device(directory, number, bytes);
  write(directory + "/partition", "1\n");
  return directory;
}

void FakeMachine::add_mount(const std::string& number, const std::string& point,
                            const std::string& type, const std::string& source,
                            const std::string& options) {
  mounts_ += "27 1 " + number + " / " + point + " " + options + ",relatime shared:1 - " + type +
             " " + source + " " + options + "\n";
  write("/proc/self/mountinfo", mounts_);
}

}  // namespace cairn::profiler
