// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/region_backing.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"

namespace cairn {
namespace {

// A reader of what was in that memory before may still be copying, and throws its copy away
// (memory/tiers/shared_copy.h). The language calls that a race.
void copy_to_bucket(void* to, const std::byte* from, std::size_t length) {
#if defined(CAIRN_TSAN) || defined(__SANITIZE_THREAD__)
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t at = 0; at < length; ++at)
    std::atomic_ref<std::byte>(out[at]).store(from[at], std::memory_order_relaxed);
#else
  std::memcpy(to, from, length);
#endif
}

}  // namespace

ssize_t RegionBacking::read(std::uint64_t offset, void* buffer, std::size_t length) {
  if (bytes_ == nullptr) return -ENODATA;
  if (offset >= status_.stamp.size) return 0;
  const std::size_t got = std::min<std::uint64_t>(length, status_.stamp.size - offset);
  CAIRN_DCHECK(buffer != bytes_ + offset);  // see memory/buffer/region_keep.h
  copy_to_bucket(buffer, bytes_ + offset, got);
  return static_cast<ssize_t>(got);
}

ssize_t RegionBacking::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  return read(offset, buffer, length);
}

ssize_t RegionBacking::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  std::size_t done = 0;
  for (const iovec& part : parts) {
    const ssize_t got = read(offset + done, part.iov_base, part.iov_len);
    if (got < 0) return got;
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < part.iov_len) break;
  }
  return static_cast<ssize_t>(done);
}

ssize_t RegionBacking::write(std::uint64_t, const void*, std::size_t) { return -EBADF; }

ssize_t RegionBacking::write_once(std::uint64_t, std::span<const iovec>) { return -EBADF; }

ssize_t RegionBacking::append(const void*, std::size_t, std::uint64_t*) { return -EBADF; }

int RegionBacking::truncate(std::uint64_t) { return -EBADF; }

int RegionBacking::allocate(int, std::uint64_t, std::uint64_t) { return -EBADF; }

int RegionBacking::set_mtime(std::int64_t) { return -EBADF; }

int RegionBacking::status(StoreStatus* status) {
  *status = status_;
  return 0;
}

int RegionBacking::sync(SyncDepth) { return 0; }

}  // namespace cairn
