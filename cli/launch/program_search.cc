// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/program_search.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

// 0, or the errno that execve would give for what can be seen of the file.
int execution_error(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (::access(path.c_str(), X_OK) != 0) return errno;
  return 0;
}

FoundProgram refuse(const std::string& name, int error) {
  FoundProgram refused;
  const bool missing = error == ENOENT || error == ENOTDIR;
  refused.exit_status = missing ? kExitNotFound : kExitNotExecutable;
  refused.message = fmt::format("{}: {}", name, std::strerror(error));
  return refused;
}

}  // namespace

FoundProgram find_program(const std::string& name) {
  if (name.empty()) return refuse("\"\"", ENOENT);
  if (name.find('/') != std::string::npos) {
    const int error = execution_error(name);
    return error == 0 ? FoundProgram{name, 0, ""} : refuse(name, error);
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/bin:/usr/bin" : variable;
  int first_error = 0;
  size_t start = 0;
  while (start <= path.size()) {
    const size_t end = std::min(path.find(':', start), path.size());
    // An empty entry of PATH is the working directory.
    const std::string directory = end == start ? "." : path.substr(start, end - start);
    const std::string candidate = directory + "/" + name;
    const int error = execution_error(candidate);
    if (error == 0) return {candidate, 0, ""};
    if (first_error == 0 && error != ENOENT && error != ENOTDIR && error != EISDIR)
      first_error = error;
    start = end + 1;
  }
  if (first_error != 0) return refuse(name, first_error);
  FoundProgram missing;
  missing.exit_status = kExitNotFound;
  missing.message = fmt::format("{}: program not found in PATH", name);
  return missing;
}

}  // namespace cairn::cli
