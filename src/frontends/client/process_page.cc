// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/process_page.h"

#include <sys/mman.h>

#include "base/system_call.h"

namespace cairn {

constinit ProcessPage process_page{};
constinit thread_local ThreadState thread_state{};

bool is_vfork_child() {
  const std::int32_t owner = process_page.pid.load(std::memory_order_relaxed);
  return owner != 0 && owner != sys::getpid();
}

void wipe_page_on_fork() {
  // A write, and not a read before the write: the page comes with one fault.
  if (process_page.is_primed.fetch_or(0, std::memory_order_relaxed) != 0) return;
  sys::madvise(&process_page, sizeof process_page, MADV_WIPEONFORK);
  process_page.is_primed.store(1, std::memory_order_relaxed);
}

}  // namespace cairn
