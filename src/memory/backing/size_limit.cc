// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/size_limit.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/system_call.h"

namespace cairn {

constinit std::atomic<std::uint64_t> checked_size{kCheckedOffset};
constinit std::atomic<std::uint64_t> size_limit{UINT64_MAX};

void read_size_limit() {
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)) != 0) return;
  size_limit.store(limit.rlim_cur, std::memory_order_relaxed);
  checked_size.store(std::min<std::uint64_t>(limit.rlim_cur, kCheckedOffset),
                     std::memory_order_relaxed);
}

}  // namespace cairn
