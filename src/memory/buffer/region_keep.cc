// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/region_keep.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {

bool keep_whole_region(const ObjectAccess& access) {
  CAIRN_CHECK(access.object().kind() == ObjectKind::kRegion);
  // Whole blocks, so that one that goes to a file tier is not read from there again; not on the
  // stack, because it may be that of a program's thread.
  void* const unread =
      sys::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::is_error(unread)) return false;
  const std::uint64_t bytes = access.object().size.load(std::memory_order_acquire);
  bool is_whole = true;
  for (std::uint64_t at = 0; at < bytes && is_whole; at += kBlockBytes) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes - at, kBlockBytes);
    is_whole = read_object(access, at, unread, wanted) == static_cast<ssize_t>(wanted);
  }
  sys::munmap(unread, kBlockBytes);
  return is_whole;
}

}  // namespace cairn
