// SPDX-License-Identifier: Apache-2.0
// Copies between a bucket that others may be changing and private memory, mostly the application's:
// what is said of bad addresses in base/user_copy.h holds for all of them.
//
// A reader copies without a lock and validates the sequence afterwards, so a torn copy is thrown
// away. The language calls such a copy a race; under ThreadSanitizer it is therefore made with
// relaxed atomic words.
//
// Thread safety: the caller's protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/fence.h"
#include "base/user_copy.h"

namespace cairn {

// The copies return how many bytes at the end could not be copied, because one of the two sides is
// not there.
#if defined(CAIRN_TSAN) || defined(__SANITIZE_THREAD__)
inline std::size_t copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t at = 0; at < length; ++at) {
    out[at] = std::atomic_ref<std::byte>(const_cast<std::byte&>(from[at]))
                  .load(std::memory_order_relaxed);
  }
  return 0;
}
inline std::size_t copy_to_shared(std::byte* to, const void* from, std::size_t length) {
  const auto* in = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(in[at], std::memory_order_relaxed);
  }
  return 0;
}
inline std::size_t zero_shared(std::byte* to, std::size_t length) {
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(std::byte{0}, std::memory_order_relaxed);
  }
  return 0;
}
#else
// From this length on the bucket is written past the caches: its next reader is another process or
// a device, and the line need not be read before it is overwritten (measured: 64 KiB in 3.4 instead
// of 6.0 us, 1 MiB in 49 instead of 126).
inline constexpr std::size_t kStreamBytesMin = 4096;

inline std::size_t copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  return user_copy(to, from, length);
}
inline std::size_t copy_to_shared(std::byte* to, const void* from, std::size_t length) {
  return length >= kStreamBytesMin ? user_copy_streaming(to, from, length)
                                   : user_copy(to, from, length);
}
inline std::size_t zero_shared(std::byte* to, std::size_t length) { return user_zero(to, length); }
#endif

// The copy is complete before the sequence is read again.
inline void end_shared_copy() { fence(std::memory_order_acquire); }

}  // namespace cairn
