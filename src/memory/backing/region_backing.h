// SPDX-License-Identifier: Apache-2.0
// The backing of a chunk of an array: its cells, as a reader of the array has just made them, or
// nothing.
//
// The service cannot read such a chunk by itself, because only the program's own library knows
// where its cells are and how they are packed. So its blocks are clean, always: what the tiers drop
// is made again by the next reader. Without bytes a read says -ENODATA.
//
// Thread safety: any thread, as long as nobody changes the bytes. Ownership: borrows the bytes.
#pragma once

#include "memory/backing/backing.h"

namespace cairn {

class RegionBacking final : public Backing {
 public:
  // `bytes`: null, or as many as the status says.
  RegionBacking(const StoreStatus& status, const std::byte* bytes)
      : Backing(-1), status_(status), bytes_(bytes) {}

  bool is_writable() const override { return false; }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  // All that would change it: -EBADF.
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int truncate(std::uint64_t size) override;
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  int status(StoreStatus* status) override;
  int sync(SyncDepth depth) override;

 private:
  const StoreStatus status_;
  const std::byte* const bytes_;
};

}  // namespace cairn
