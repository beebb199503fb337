// SPDX-License-Identifier: Apache-2.0
#include "frontends/libc/real_calls.h"

#include <dlfcn.h>
#include <errno.h>

namespace cairn {
namespace {

// Stands in for a function that this libc does not have. Every such function returns a signed word.
long missing_call() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

void* resolve_real(const char* name) {
  const int saved = errno;
  void* found = dlsym(RTLD_NEXT, name);
  errno = saved;
  return found != nullptr ? found : reinterpret_cast<void*>(&missing_call);
}

}  // namespace cairn
