// SPDX-License-Identifier: Apache-2.0
// Copies between our memory and memory of which nothing is known.
//
// An application may pass any address. Natively the kernel copies, notices that a page is not
// there, and the call says EFAULT or how much was done; here we copy ourselves, and the processor
// raises SIGSEGV (SIGBUS, where a mapped file was cut). So all such copies are made by two routines
// whose addresses are known. The handler of these signals (frontends/posix/signal_calls.cc) asks
// recover_from_fault(), which lets the routine go on where it copies byte by byte up to the bad
// page and then says how many bytes are missing. A copy that meets no fault pays nothing for it.
//
// In a thread that has SIGSEGV blocked the kernel cannot call a handler and ends the program.
//
// Thread safety: any thread. Without a handler that asks (in the service, on processors other than
// x86-64) a bad address is a crash as anywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn {

#if defined(__x86_64__) && !defined(CAIRN_TSAN) && !defined(__SANITIZE_THREAD__)
#define CAIRN_USER_COPY 1

extern "C" {
// Copies `length` bytes that do not overlap, in order. Returns how many at the end could not be
// copied: those of `to` are as they were.
__attribute__((visibility("hidden"))) std::size_t cairn_copy(void* to, const void* from,
                                                             std::size_t length);
// The same past the caches, for 128 bytes and more whose next reader is another process or a
// device.
__attribute__((visibility("hidden"))) std::size_t cairn_copy_streaming(void* to, const void* from,
                                                                       std::size_t length);
}
inline std::size_t user_copy(void* to, const void* from, std::size_t length) {
  return cairn_copy(to, from, length);
}
inline std::size_t user_copy_streaming(void* to, const void* from, std::size_t length) {
  return cairn_copy_streaming(to, from, length);
}
#else
inline std::size_t user_copy(void* to, const void* from, std::size_t length) {
  std::memcpy(to, from, length);
  return 0;
}
inline std::size_t user_copy_streaming(void* to, const void* from, std::size_t length) {
  return user_copy(to, from, length);
}
#endif
// Returns how many bytes could not be set to 0.
std::size_t user_zero(void* to, std::size_t length);

// Behind the last address that a program can have on this processor, or more before
// tune_user_copy().
extern constinit std::uintptr_t user_space_end;

// Whether the kernel refuses the address at sight, because it or the end of the range is outside of
// user space. A hole within the range shows when it is copied.
inline bool is_outside_user_space(const void* address, std::size_t length) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return begin + length < begin || begin + length > user_space_end;
}

// Chooses the instructions that are fastest on this processor. Copies are right before, too.
void tune_user_copy();

// Whether the instruction at which the signal's context (a ucontext_t) stopped is one of the copies
// above. Then the context has been changed so that the copy ends early when the handler returns.
bool recover_from_fault(void* context);

// A value at an address that the application gave; false when it cannot be read or written.
template <typename T>
[[nodiscard]] inline bool get_user(T* to, const T* from) {
  return user_copy(to, from, sizeof(T)) == 0;
}
template <typename T>
[[nodiscard]] inline bool put_user(T* to, const T& from) {
  return user_copy(to, &from, sizeof(T)) == 0;
}

// How many of the bytes from the address on can be read now, up to the first page that cannot.
std::size_t readable_bytes(const void* address, std::size_t length);

}  // namespace cairn
