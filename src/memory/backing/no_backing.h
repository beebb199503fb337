// SPDX-License-Identifier: Apache-2.0
// The backing of an object that has no store: a scratch object, whose bytes are in the tiers alone.
//
// It has a size and a time, which are only numbers, and reads as zeros. It takes no bytes: a flush
// ends with -ENOSPC and leaves the blocks dirty, as on a store that is full. To say anything else
// would let the organizer drop them.
//
// Thread safety: any thread. Ownership: owns nothing.
#pragma once

#include <atomic>

#include "memory/backing/backing.h"

namespace cairn {

class NoBacking final : public Backing {
 public:
  explicit NoBacking(const ObjectKey& key, std::uint64_t size = 0)
      : Backing(-1), key_(key), size_(size) {}

  bool is_writable() const override { return true; }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int status(StoreStatus* status) override;
  int truncate(std::uint64_t size) override;
  // -EOPNOTSUPP: it has no room to give.
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  // There is nothing to wait for.
  int sync(SyncDepth depth) override;

 private:
  const ObjectKey key_;
  std::atomic<std::uint64_t> size_;
  std::atomic<std::int64_t> mtime_ns_{0};
};

}  // namespace cairn
