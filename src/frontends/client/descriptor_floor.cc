// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/descriptor_floor.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {
namespace {

// Private descriptors start here at the latest; the kernel copies its table up to the highest one
// at every fork.
constexpr int kFloorMax = 4096;

}  // namespace

int descriptor_floor() {
  rlimit limit{};
  const long result = sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit));
  if (result < 0) return 3;
  const int top = limit.rlim_cur > 2 * kFloorMax ? 2 * kFloorMax : static_cast<int>(limit.rlim_cur);
  return top / 2;
}

int move_high(int fd) {
  CAIRN_DCHECK(fd >= 0);
  const int high = sys::fcntl(fd, F_DUPFD_CLOEXEC, descriptor_floor());
  if (high < 0) return fd;
  sys::close(fd);
  return high;
}

}  // namespace cairn
