// SPDX-License-Identifier: Apache-2.0
//
// Another machine, made of files: /proc, /sys and /dev as a test wants them.
//
// Thread safety: none. Ownership: a temporary directory, removed with the object.
#pragma once

#include <string>

#include "service/profiler/system_text.h"

namespace cairn::profiler {

inline constexpr uint64_t kGibibyte = uint64_t{1} << 30;

class FakeMachine {
 public:
  FakeMachine();
  ~FakeMachine();
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  const MachineRoots& roots() const { return roots_; }

  // A real directory of the test's, for what has to exist.
  std::string directory(const std::string& name) const;

  // Relative to the root: write("/proc/meminfo", ...). Parents are made.
  void write(const std::string& path, const std::string& text) const;
  void link(const std::string& path, const std::string& target) const;

  // A whole disk in /sys, and a partition of one. Return: its directory, relative to the root.
  std::string add_disk(const std::string& name, const std::string& number, uint64_t bytes,
                       const char* rotational) const;
  std::string add_partition(const std::string& disk, const std::string& name,
                            const std::string& number, uint64_t bytes) const;

  // One line of mountinfo.
  void add_mount(const std::string& number, const std::string& point, const std::string& type,
                 const std::string& source, const std::string& options = "rw");

 private:
  void add_device(const std::string& directory, const std::string& number, uint64_t bytes) const;

  std::string root_;
  std::string mounts_;
  MachineRoots roots_;
};

}  // namespace cairn::profiler
