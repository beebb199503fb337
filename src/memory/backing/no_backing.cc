// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/no_backing.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace cairn {

ssize_t NoBacking::read(std::uint64_t offset, void* buffer, std::size_t length) {
  const std::uint64_t size = size_.load(std::memory_order_acquire);
  if (offset >= size) return 0;
  const auto got = static_cast<std::size_t>(std::min<std::uint64_t>(length, size - offset));
  std::memset(buffer, 0, got);
  return static_cast<ssize_t>(got);
}

ssize_t NoBacking::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  return read(offset, buffer, length);
}

ssize_t NoBacking::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  std::size_t done = 0;
  for (const iovec& part : parts) {
    const ssize_t got = read(offset + done, part.iov_base, part.iov_len);
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < part.iov_len) break;
  }
  return static_cast<ssize_t>(done);
}

ssize_t NoBacking::write(std::uint64_t, const void*, std::size_t) { return -ENOSPC; }

ssize_t NoBacking::write_once(std::uint64_t, std::span<const iovec>) { return -ENOSPC; }

ssize_t NoBacking::append(const void*, std::size_t, std::uint64_t*) { return -ENOSPC; }

int NoBacking::status(StoreStatus* status) {
  *status = StoreStatus();
  status->key = key_;
  status->stamp.size = size_.load(std::memory_order_acquire);
  status->stamp.mtime_ns = mtime_ns_.load(std::memory_order_acquire);
  status->stamp.ctime_ns = status->stamp.mtime_ns;
  status->mode = S_IFREG | S_IRUSR | S_IWUSR;
  status->links = 1;
  return 0;
}

int NoBacking::truncate(std::uint64_t size) {
  size_.store(size, std::memory_order_release);
  return 0;
}

int NoBacking::allocate(int, std::uint64_t, std::uint64_t) { return -EOPNOTSUPP; }

int NoBacking::set_mtime(std::int64_t mtime_ns) {
  mtime_ns_.store(mtime_ns, std::memory_order_release);
  return 0;
}

int NoBacking::sync(SyncDepth) { return 0; }

}  // namespace cairn
