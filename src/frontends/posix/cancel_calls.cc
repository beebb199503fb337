// SPDX-License-Identifier: Apache-2.0
// pthread_cancel(): from the first one on, the hooks of cancellation points look for it.
#include <pthread.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/direct_io.h"
#include "frontends/libc/cancellation.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

namespace cairn::real {
namespace {
constinit RealCall<int(pthread_t)> pthread_cancel{"pthread_cancel"};
}  // namespace
}  // namespace cairn::real

CAIRN_HOOK(int, pthread_cancel, (pthread_t thread)) {
  if (!cairn::has_cancelled.exchange(true)) {
    // The shortest way of a read does not look.
    cairn::DescriptorTable::for_each(
        [](int, cairn::OpenFile& file) { cairn::note_direct_flag(file); });
  }
  return cairn::real::pthread_cancel(thread);
}
