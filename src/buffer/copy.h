// SPDX-License-Identifier: Apache-2.0
// Copies between a bucket that others may be changing and private memory.
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

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace cairn {

#if defined(CAIRN_TSAN) || defined(__SANITIZE_THREAD__)
inline void copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t at = 0; at < length; ++at) {
    out[at] = std::atomic_ref<std::byte>(const_cast<std::byte&>(from[at]))
                  .load(std::memory_order_relaxed);
  }
}
inline void copy_to_shared(std::byte* to, const void* from, std::size_t length) {
  const auto* in = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(in[at], std::memory_order_relaxed);
  }
}
// ThreadSanitizer does not model fences; the relaxed words above and the locked word order the copy
// well enough for it.
inline void end_shared_copy() {}
inline void zero_shared(std::byte* to, std::size_t length) {
  for (std::size_t at = 0; at < length; ++at) {
    std::atomic_ref<std::byte>(to[at]).store(std::byte{0}, std::memory_order_relaxed);
  }
}
#else
#if defined(__x86_64__)
// From this length on the bucket is written past the caches: its next reader is another process or
// a device, and the line need not be read before it is overwritten (measured: 64 KiB in 3.4 instead
// of 6.0 us, 1 MiB in 49 instead of 126).
inline constexpr std::size_t kStreamBytesMin = 4096;

inline void stream_to_shared(std::byte* to, const std::byte* from, std::size_t length) {
  constexpr std::size_t kLine = 64;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) & (kLine - 1);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= length; at += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + at);
    auto* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(in);
    const __m128i second = _mm_loadu_si128(in + 1);
    const __m128i third = _mm_loadu_si128(in + 2);
    const __m128i fourth = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, first);
    _mm_stream_si128(out + 1, second);
    _mm_stream_si128(out + 2, third);
    _mm_stream_si128(out + 3, fourth);
  }
  _mm_sfence();  // before the lock word says that the bytes are there
  std::memcpy(to + at, from + at, length - at);
}
#endif
inline void copy_from_shared(void* to, const std::byte* from, std::size_t length) {
  std::memcpy(to, from, length);
}
inline void copy_to_shared(std::byte* to, const void* from, std::size_t length) {
#if defined(__x86_64__)
  if (length >= kStreamBytesMin) {
    stream_to_shared(to, static_cast<const std::byte*>(from), length);
    return;
  }
#endif
  std::memcpy(to, from, length);
}
inline void zero_shared(std::byte* to, std::size_t length) { std::memset(to, 0, length); }
// The copy is complete before the sequence is read again.
inline void end_shared_copy() { std::atomic_thread_fence(std::memory_order_acquire); }
#endif

}  // namespace cairn
