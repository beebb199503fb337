// SPDX-License-Identifier: Apache-2.0
// A tier in one preallocated pool file on a local device, read and written with direct I/O. The
// file begins with a superblock that says whose it is (memory/tiers/pool_format.h). What it gives
// back is compared with the checksums of what it was given (memory/tiers/page_sums.h).
//
// Clients and the service use the same file by their own descriptors; a bucket's descriptor lock
// orders writes, and readers validate the bucket's sequence after their read, as in memory.
//
// Thread safety: stateless but for the descriptor. Ownership: closes its descriptor.
#pragma once

#include <string>

#include "base/status.h"
#include "memory/tiers/page_sums.h"
#include "memory/tiers/pool_format.h"
#include "memory/tiers/tier.h"

namespace cairn {

class FileTier final : public Tier {
 public:
  enum class Room : std::uint8_t {
    kTaken,       // from the beginning
    kWhenNeeded,  // the swap area, which may never be
  };

  FileTier() = default;
  // A client makes it of the file that the service has created and sent.
  FileTier(int fd, std::uint64_t capacity_bytes) : fd_(fd), capacity_bytes_(capacity_bytes) {}
  FileTier(FileTier&& other) noexcept;
  FileTier& operator=(FileTier&& other) noexcept;
  ~FileTier();

  // Creates a file without a name in `directory`, preallocates it, writes its superblock and reads
  // that back: a device that gives other bytes than it got is of no use. Other
  // users of the directory can neither make it beforehand nor open it; it vanishes with its last
  // descriptor. Falls back to buffered I/O where the file system has no direct I/O, and to a random
  // name for an instant where it has no unnamed files. Errors: kExhausted when the device has no
  // room, kDenied (also for a directory that open_safe_directory() refuses), kNotFound.
  static Result<FileTier> create(const std::string& directory, const PoolIdentity& identity,
                                 Room room = Room::kTaken);

  // Whether the file is the pool that create() makes for `expected`. Errors: kInvalid and
  // kIncompatible as check_superblock(), also when the file is shorter than its superblock says;
  // those of the device.
  Status check(const PoolIdentity& expected) const;

  TierMedium medium() const override { return fd_ < 0 ? TierMedium::kNone : TierMedium::kFile; }
  std::uint64_t capacity_bytes() const override { return capacity_bytes_; }
  std::byte* address_of(TierExtent) const override { return nullptr; }
  DevicePlace on_device(TierExtent extent) const override {
    return DevicePlace{fd_, kPoolDataOffset + extent.offset};
  }
  void forget_sums(TierExtent extent) const override { sums_.forget(extent); }
  void note_sums(TierExtent extent, std::span<const iovec> parts) const override {
    sums_.note(extent, parts);
  }
  bool keeps_sums() const override { return sums_.are_kept(); }
  // Where the checksums of its pages are; without them nothing is compared.
  void set_sums(const PageSums& sums) { sums_ = sums; }
  int fd() const { return fd_; }

 private:
  int do_read(TierExtent extent, std::span<const iovec> parts) const override;
  int do_write(TierExtent extent, std::span<const iovec> parts) const override;
  int do_fetch(TierExtent extent, std::span<const iovec> parts) const override {
    return read_device(extent, parts);
  }
  bool do_agree(TierExtent extent, std::span<const iovec> parts) const override {
    return sums_.agree(extent, parts);
  }
  int read_device(TierExtent extent, std::span<const iovec> parts) const;
  int write_device(TierExtent extent, std::span<const iovec> parts) const;

  int fd_ = -1;
  std::uint64_t capacity_bytes_ = 0;
  PageSums sums_;
};

}  // namespace cairn
