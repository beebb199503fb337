// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "cli/terminal/failure.h"

namespace cairn::cli {

std::string absolute_path(const std::string& path) {
  std::array<char, PATH_MAX> resolved{};
  if (::realpath(path.c_str(), resolved.data()) != nullptr) return resolved.data();
  if (!path.empty() && path.front() == '/') return path;
  if (::getcwd(resolved.data(), resolved.size()) == nullptr) return path;
  return std::string(resolved.data()) + "/" + path;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string buffering_problem(const std::string& text, const std::string& path) {
  if (text.empty()) return "an empty name";
  if (path.find(':') != std::string::npos) {
    return fmt::format("{}: a colon in the path is not supported; use a symbolic link without one",
                       path);
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return fmt::format("{} does not exist", path);
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a directory", path);
  if (path == "/proc" || path == "/sys" || path == "/dev")
    return fmt::format("{} is never buffered", path);
  return "";
}

std::string working_directory() {
  std::array<char, PATH_MAX> directory{};
  if (::getcwd(directory.data(), directory.size()) != nullptr) return directory.data();
  throw Failure(fmt::format("the working directory is not accessible: {}", std::strerror(errno)),
                "change to a directory that exists, or name one with --buffer DIR");
}

}  // namespace cairn::cli
