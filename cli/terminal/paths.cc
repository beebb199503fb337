// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/paths.h"

#include <fmt/format.h>
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

std::string working_directory() {
  std::array<char, PATH_MAX> directory{};
  if (::getcwd(directory.data(), directory.size()) != nullptr) return directory.data();
  throw Failure(fmt::format("the working directory is not accessible: {}", std::strerror(errno)),
                "change to a directory that exists, or name one with --buffer DIR");
}

}  // namespace cairn::cli
