// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/profile_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/private_file.h"
#include "base/state_directory.h"
#include "service/profiler/profile_json.h"
#include "service/profiler/system_text.h"

namespace cairn::profiler {
namespace {

using nlohmann::json;

constexpr uint64_t kVersion = 1;

// Holds the lock of a store while it is changed. The lock file stays: removing it would let two
// processes lock two files of one name.
class StoreLock {
 public:
  explicit StoreLock(const std::string& file) {
    descriptor_ = ::open((file + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0) {
      error_number_ = errno;
      return;
    }
    while (::flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      error_number_ = errno;
      return;
    }
  }
  ~StoreLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  int error_number() const { return error_number_; }

 private:
  int descriptor_ = -1;
  int error_number_ = 0;
};

int write_and_sync(const std::string& path, const std::string& text) {
  const int descriptor = open_new_file(path.c_str(), 0644);
  if (descriptor < 0) return -descriptor;
  std::string_view rest = text;
  int error_number = 0;
  while (!rest.empty() && error_number == 0) {
    const ssize_t count = ::write(descriptor, rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (error_number == 0 && ::fsync(descriptor) != 0) error_number = errno;
  if (::close(descriptor) != 0 && error_number == 0) error_number = errno;
  return error_number;
}

// The new name of the file survives a crash, too; where a directory cannot be synced it may not.
void sync_directory_of(const std::string& file) {
  const int descriptor =
      ::open(file.substr(0, file.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)::fsync(descriptor);
  ::close(descriptor);
}

void load_entries(const json& document, const std::string& file, LoadedProfiles* loaded) {
  const auto profiles = document.find("profiles");
  if (profiles == document.end() || !profiles->is_array()) {
    loaded->problems.push_back(file + ": holds no list of profiles; it is ignored");
    return;
  }
  size_t number = 0;
  for (const json& entry : *profiles) {
    ++number;
    auto profile = profile_of_json(entry);
    if (profile.is_ok() && loaded->profiles.size() < ProfileStore::kProfilesMax) {
      loaded->profiles.push_back(std::move(profile.value()));
    } else if (!profile.is_ok()) {
      loaded->problems.push_back(file + ": profile " + std::to_string(number) + ": " +
                                 profile.status().message() + "; it is ignored");
    }
  }
}

}  // namespace

std::string ProfileStore::default_file() {
  const std::string directory = state_directory();
  return directory.empty() ? directory : directory + "/profiles.json";
}

LoadedProfiles ProfileStore::load() const {
  LoadedProfiles loaded;
  struct stat status{};
  if (file_.empty() || ::stat(file_.c_str(), &status) != 0) {
    if (!file_.empty() && errno != ENOENT && errno != ENOTDIR) {
      loaded.problems.push_back(Status::from_errno(errno, file_).message());
    }
    return loaded;
  }
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > kFileBytesMax) {
    loaded.problems.push_back(file_ + ": is not a file of at most 4 MiB; it is ignored");
    return loaded;
  }
  if (::access(file_.c_str(), R_OK) != 0) {
    loaded.problems.push_back(Status::from_errno(errno, file_).message());
    return loaded;
  }
  const json document = json::parse(read_text(file_, kFileBytesMax), nullptr, false);
  const auto version = document.is_object() ? document.find("version") : document.end();
  if (!document.is_object() || version == document.end() || !version->is_number_unsigned()) {
    loaded.problems.push_back(file_ + ": is not a file of profiles; it is ignored");
    return loaded;
  }
  if (version->get<uint64_t>() != kVersion) {
    loaded.newer_version = version->get<uint64_t>() > kVersion;
    loaded.problems.push_back(file_ + ": has version " + std::to_string(version->get<uint64_t>()) +
                              " where this Cairn writes " + std::to_string(kVersion) +
                              "; it is ignored");
    return loaded;
  }
  load_entries(document, file_, &loaded);
  CAIRN_CHECK(loaded.profiles.size() <= kProfilesMax);
  return loaded;
}

std::optional<DeviceProfile> ProfileStore::find(const DeviceIdentity& identity) const {
  std::optional<DeviceProfile> latest;
  for (DeviceProfile& profile : load().profiles) {
    if (!is_same_device(profile.identity, identity)) continue;
    if (!latest || profile.measured_at >= latest->measured_at) latest = std::move(profile);
  }
  return latest;
}

std::optional<DeviceProfile> ProfileStore::lookup(const std::string& directory,
                                                  const MachineRoots& roots) const {
  const auto identity = identify_directory(directory, roots);
  return identity.is_ok() ? find(identity.value()) : std::nullopt;
}

Status ProfileStore::save(const DeviceProfile& profile) const {
  return change([&profile](std::vector<DeviceProfile>* profiles) {
    std::erase_if(*profiles, [&profile](const DeviceProfile& known) {
      return is_same_device(known.identity, profile.identity);
    });
    // By age, and of equal age as they came; a file that somebody edited need not be in order.
    std::multimap<decltype(profile.measured_at), DeviceProfile> by_age;
    for (const DeviceProfile& known : *profiles) by_age.emplace(known.measured_at, known);
    by_age.emplace(profile.measured_at, profile);
    profiles->clear();
    for (auto& [measured_at, known] : by_age) profiles->push_back(std::move(known));
    if (profiles->size() > kProfilesMax) {
      profiles->erase(profiles->begin(), profiles->end() - static_cast<ptrdiff_t>(kProfilesMax));
    }
  });
}

Result<size_t> ProfileStore::forget(const std::function<bool(const DeviceProfile&)>& chosen) const {
  if (!file_.empty() && ::access(file_.c_str(), F_OK) != 0) return size_t{0};
  size_t count = 0;
  CAIRN_RETURN_IF_ERROR(change([&chosen, &count](std::vector<DeviceProfile>* profiles) {
    count = std::erase_if(*profiles, chosen);
  }));
  return count;
}

Status ProfileStore::change(const std::function<void(std::vector<DeviceProfile>*)>& edit) const {
  if (file_.empty()) {
    return {StatusCode::kNotFound,
            "there is no place for profiles: neither HOME nor "
            "XDG_STATE_HOME names one"};
  }
  const std::string directory = file_.substr(0, file_.rfind('/'));
  if (const int error_number = make_directories(directory); error_number != 0) {
    return Status::from_errno(error_number, directory);
  }
  const StoreLock lock(file_);
  if (lock.error_number() != 0) return Status::from_errno(lock.error_number(), file_ + ".lock");
  LoadedProfiles loaded = load();
  if (loaded.newer_version) {
    return {StatusCode::kIncompatible, file_ +
                                           ": was written by a later version of Cairn and is "
                                           "not replaced"};
  }
  edit(&loaded.profiles);
  return replace(loaded.profiles);
}

Status ProfileStore::replace(const std::vector<DeviceProfile>& profiles) const {
  json list = json::array();
  for (const DeviceProfile& profile : profiles) list.push_back(profile_json(profile));
  const json document = {{"version", kVersion}, {"profiles", list}};
  const std::string text = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  const std::string beside = file_ + ".new";
  int error_number = write_and_sync(beside, text);
  if (error_number == 0 && ::rename(beside.c_str(), file_.c_str()) != 0) error_number = errno;
  if (error_number != 0) {
    ::unlink(beside.c_str());
    return Status::from_errno(error_number, file_);
  }
  sync_directory_of(file_);
  return Status::ok();
}

}  // namespace cairn::profiler
