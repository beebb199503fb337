// SPDX-License-Identifier: Apache-2.0
#include "service/process/quiet_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace cairn::node {

UniqueFd open_quietly(const std::string& path) {
  const UniqueFd seen(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!seen || ::fstat(seen.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return {};
  }
  const std::string own = "/proc/self/fd/" + std::to_string(seen.get());
  constexpr int kFlags = O_RDONLY | O_CLOEXEC;
  UniqueFd fd(::open(own.c_str(), kFlags | O_NOATIME));
  if (!fd && errno == EPERM) fd.reset(::open(own.c_str(), kFlags));
  return fd;
}

}  // namespace cairn::node
