// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/scratch_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cairn::cli {
namespace {

bool write_text(const char* path, const char* text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const bool done = ::write(file, text, static_cast<std::size_t>(length)) == length;
  const int error = errno;
  ::close(file);
  errno = error;
  return done;
}

// The user and the group keep their numbers.
bool enter_user_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  char map[64];
  // Kernels before 3.19 have no such file and need none.
  if (!write_text("/proc/self/setgroups", "deny") && errno != ENOENT) return false;
  std::snprintf(map, sizeof map, "%u %u 1", group, group);
  if (!write_text("/proc/self/gid_map", map)) return false;
  std::snprintf(map, sizeof map, "%u %u 1", user, user);
  return write_text("/proc/self/uid_map", map);
}

}  // namespace

int enter_scratch(const std::vector<ScratchMount>& mounts, const char** failed_step) {
  *failed_step = "mount namespace for the scratch directories";
  if (::unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM || !enter_user_namespace()) return errno;
  }
  // Mounts of the run must not appear outside; later mounts outside may appear here.
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  *failed_step = "mount of a scratch directory";
  for (const ScratchMount& mount : mounts) {
    if (::mount(mount.source.c_str(), mount.target.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return errno;
  }
  *failed_step = "return to the working directory";
  // The working directory may lie below a directory that has just been covered.
  char here[4096];
  if (::getcwd(here, sizeof here) != nullptr && ::chdir(here) != 0 && errno != ENOENT) return errno;
  return 0;
}

}  // namespace cairn::cli
