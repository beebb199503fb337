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
  // An exchange with the value that is expected, and not a load: the page comes with one fault.
  std::uint32_t is_primed = 1;
  if (process_page.is_primed.compare_exchange_strong(is_primed, 1, std::memory_order_relaxed))
    return;
  sys::madvise(&process_page, sizeof process_page, MADV_WIPEONFORK);
  process_page.is_primed.store(1, std::memory_order_relaxed);
}

}  // namespace cairn
