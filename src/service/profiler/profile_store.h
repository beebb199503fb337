// SPDX-License-Identifier: Apache-2.0
//
// The measured figures of devices, kept from one run to the next in one JSON file.
//
// The file is replaced as a whole (written beside, fsync, rename) under a lock on FILE.lock, so
// that processes that store at the same time lose nothing of each other, and a reader sees the one
// state or the other. The store trusts nothing that it reads: it checks every value, leaves a wrong
// entry out and names it, and takes a file that is no profile file at all for an empty one.
//
// Thread safety: any thread and process. Ownership: results are values.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/profiler/device_identity.h"
#include "service/profiler/device_profile.h"

namespace cairn::profiler {

struct LoadedProfiles {
  std::vector<DeviceProfile> profiles;
  // The faults of the file or of single entries, in words for people; empty when there are none.
  std::vector<std::string> problems;
  bool newer_version = false;  // written by a later Cairn: not to be replaced
};

class ProfileStore {
 public:
  static constexpr size_t kFileBytesMax = size_t{4} << 20;
  // The oldest give way to new ones.
  static constexpr size_t kProfilesMax = 256;

  explicit ProfileStore(std::string file = default_file()) : file_(std::move(file)) {}

  // profiles.json in base/state_directory.h. Empty when there is no such place.
  static std::string default_file();

  const std::string& file() const { return file_; }

  // A file that does not exist is empty without a problem.
  LoadedProfiles load() const;

  // The figures of this very device; nothing when they are of another one by now. The latest where
  // there are several.
  std::optional<DeviceProfile> find(const DeviceIdentity& identity) const;

  // As find(), of the device under a directory.
  std::optional<DeviceProfile> lookup(const std::string& directory,
                                      const MachineRoots& roots = {}) const;

  // Replaces what is known of the same device.
  Status save(const DeviceProfile& profile) const;

  // Returns: how many were forgotten.
  Result<size_t> forget(const std::function<bool(const DeviceProfile&)>& chosen) const;

 private:
  Status change(const std::function<void(std::vector<DeviceProfile>*)>& edit) const;
  Status replace(const std::vector<DeviceProfile>& profiles) const;

  std::string file_;
};

}  // namespace cairn::profiler
