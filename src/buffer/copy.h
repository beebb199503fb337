// SPDX-License-Identifier: Apache-2.0
// Copies between a bucket that others may be changing and private memory.
//
// A reader copies without a lock and validates the sequence afterwards, so a torn copy is thrown away. The language
// calls such a copy a race; under ThreadSanitizer it is therefore made with relaxed atomic words.
//
// Thread safety: the caller's protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn {

#if defined(CAIRN_TSAN) || defined(__SANITIZE_THREAD__)
inline void copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t at = 0; at < length; ++at) {
    out[at] = std::atomic_ref<std::byte>(const_cast<std::byte&>(from[at])).load(std::memory_order_relaxed);
  }
}
inline void copy_to_shared(std::byte* to, const void* from, std::size_t length) {
  const auto* in = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(in[at], std::memory_order_relaxed);
  }
}
// ThreadSanitizer does not model fences; the relaxed words above and the locked word order the copy well enough for it.
inline void end_shared_copy() {}
inline void zero_shared(std::byte* to, std::size_t length) {
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(std::byte{0}, std::memory_order_relaxed);
  }
}
#else
inline void copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  std::memcpy(to, from, length);
}
inline void copy_to_shared(std::byte* to, const void* from, std::size_t length) {
  std::memcpy(to, from, length);
}
inline void zero_shared(std::byte* to, std::size_t length) { std::memset(to, 0, length); }
// The copy is complete before the sequence is read again.
inline void end_shared_copy() { std::atomic_thread_fence(std::memory_order_acquire); }
#endif

}  // namespace cairn
