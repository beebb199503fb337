// SPDX-License-Identifier: Apache-2.0
// How a hook is defined: an exported function under libc's name, whose C++ name does not clash with
// libc's headers.
//
//   CAIRN_HOOK(int, close, (int fd)) { ... }
//   CAIRN_TWIN(close, __close);               the same function under a second name
//
// Thread safety: none of its own.
#pragma once

#include <errno.h>
#include <sys/types.h>

#define CAIRN_HOOK(result, symbol, parameters)                                                     \
  extern "C" __attribute__((visibility("default"))) result cairn_hook_##symbol parameters __asm__( \
      #symbol);                                                                                    \
  extern "C" result cairn_hook_##symbol parameters

#define CAIRN_TWIN(symbol, twin) \
  extern "C" __attribute__((     \
      visibility("default"),     \
      alias(#symbol))) decltype(cairn_hook_##symbol) cairn_hook_##twin __asm__(#twin)

namespace cairn {

// Turns a result or -errno into what libc's functions return.
template <typename T>
inline T with_errno(T result) {
  if (__builtin_expect(result < 0, 0)) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

// Keeps errno as the application left it while a hook works on its own account.
class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

}  // namespace cairn
