// SPDX-License-Identifier: Apache-2.0
// libc's own functions behind our hooks, for calls that are not ours to answer.
//
// A pointer is looked up at its first use (dlsym of two hundred names would cost every process more
// than its attach). Going through libc and not the raw system call keeps cancellation points, other
// preloaded libraries and libc's own checks as they are.
//
//   namespace cairn::real { inline constinit RealCall<int(int)> close{"close"}; }
//   return real::close(fd);
//
// Thread safety: any thread. A name that this libc does not have answers -1 with ENOSYS.
#pragma once

#include <atomic>

namespace cairn {

// The next definition of `name` after this library's, or a stub that fails with ENOSYS.
void* resolve_real(const char* name);

template <typename Function>
class RealCall {
 public:
  explicit constexpr RealCall(const char* name) : name_(name) {}

  Function* get() const {
    void* known = pointer_.load(std::memory_order_relaxed);
    if (__builtin_expect(known == nullptr, 0)) {
      known = resolve_real(name_);
      pointer_.store(known, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(known);
  }
  template <typename... Arguments>
  auto operator()(Arguments... arguments) const {
    auto* known = reinterpret_cast<Function*>(pointer_.load(std::memory_order_relaxed));
    return __builtin_expect(known != nullptr, 1) ? known(arguments...) : call_first(arguments...);
  }

 private:
  // Apart, so that no hook keeps its arguments over a look that it makes once.
  template <typename... Arguments>
  [[gnu::noinline, gnu::cold]] auto call_first(Arguments... arguments) const {
    return get()(arguments...);
  }

  const char* name_;
  mutable std::atomic<void*> pointer_{nullptr};
};

}  // namespace cairn
