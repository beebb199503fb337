// SPDX-License-Identifier: Apache-2.0
// The parts of a vector of buffers (readv(2)) that are left when the kernel has done some of it.
//
// Thread safety: pure.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace cairn {

// The rest of `parts` after their first `done` bytes, without parts that are done. The one that is
// done in part is cut in place. Requires: done is at most the length of all.
inline std::span<iovec> parts_after(std::span<iovec> parts, std::size_t done) {
  while (!parts.empty() && done >= parts.front().iov_len) {
    done -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + done;
    parts.front().iov_len -= done;
  }
  return parts;
}

}  // namespace cairn
