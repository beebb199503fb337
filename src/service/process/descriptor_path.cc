// SPDX-License-Identifier: Apache-2.0
#include "service/process/descriptor_path.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "service/process/unique_fd.h"

namespace cairn::node {
namespace {

// False also where the process is gone. A kernel that names no inode is believed.
bool is_of_inode(const std::string& process, const std::string& descriptor, std::uint64_t inode) {
  const UniqueFd about(::open((process + "/fdinfo/" + descriptor).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024] = "";
  const ssize_t length = about ? ::read(about.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return false;
  text[length] = '\0';
  constexpr const char* kMark = "\nino:";
  const char* const found = std::strstr(text, kMark);
  return found == nullptr || std::strtoull(found + std::strlen(kMark), nullptr, 10) == inode;
}

}  // namespace

std::string path_of_file(pid_t pid, int descriptor, std::uint64_t inode) {
  const std::string process = "/proc/" + std::to_string(pid);
  const std::string number = std::to_string(descriptor);
  char path[PATH_MAX];
  const ssize_t length = ::readlink((process + "/fd/" + number).c_str(), path, sizeof path);
  // In this order: a number that changes its file in between is not believed.
  if (length <= 0 || path[0] != '/' || !is_of_inode(process, number, inode)) return {};
  return {path, static_cast<std::size_t>(length)};
}

}  // namespace cairn::node
