// SPDX-License-Identifier: Apache-2.0
#include "base/state_directory.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace cairn {
namespace {

constexpr const char* kSystemDirectory = "/var/lib/cairn";

bool can_be_written(const std::string& directory) {
  return make_directories(directory) == 0 && ::access(directory.c_str(), W_OK | X_OK) == 0;
}

std::string home_directory() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
}

}  // namespace

int make_directories(const std::string& directory) {
  for (size_t end = directory.find('/', 1); true; end = directory.find('/', end + 1)) {
    const std::string part = directory.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST && end == std::string::npos) {
      return errno;
    }
    if (end == std::string::npos) return 0;
  }
}

std::string state_directory() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // A relative path is to be ignored.
  if (state != nullptr && state[0] == '/') return std::string(state) + "/cairn";
  if (::geteuid() == 0 && can_be_written(kSystemDirectory)) return kSystemDirectory;
  const std::string home = home_directory();
  return home.empty() ? home : home + "/.local/state/cairn";
}

}  // namespace cairn
