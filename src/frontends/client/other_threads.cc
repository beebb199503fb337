// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/other_threads.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/system_call.h"

namespace cairn {

bool has_other_threads() {
  struct ::statx tasks;
  constexpr unsigned kLinksOfOne = 3;  // ".", the entry above, and one thread
  if (sys::statx(AT_FDCWD, "/proc/self/task", 0, STATX_NLINK, &tasks) < 0) return true;
  return tasks.stx_nlink > kLinksOfOne;
}

}  // namespace cairn
