// SPDX-License-Identifier: Apache-2.0
// The process's own limit of file sizes (setrlimit(2), RLIMIT_FSIZE). The kernel sends SIGXFSZ to a
// process that makes a file longer than that. So a process stores nothing of a longer file itself:
// the bytes may be another's, or from before the limit. The service does it.
//
// Thread safety: all functions from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

// A write that ends behind this is the kernel's to judge: by the limit, or because the backing file
// system may not follow.
inline constexpr std::uint64_t kCheckedOffset = std::uint64_t{1} << 40;
extern std::atomic<std::uint64_t> checked_size;
// RLIMIT_FSIZE alone.
extern std::atomic<std::uint64_t> size_limit;

// Asks the kernel for the limit: at the start, and when it may have changed.
void read_size_limit();

inline bool is_within_size_limit(std::uint64_t size) {
  return size <= size_limit.load(std::memory_order_relaxed);
}

}  // namespace cairn
