// SPDX-License-Identifier: Apache-2.0
// A tier in shared memory: RAM.
//
// Thread safety: as Tier; a copy out of it may be torn, and the reader's comparison of sequences
// finds that. Ownership: borrows the segment, which must outlive it.
#pragma once

#include "memory/tiers/tier.h"

namespace cairn {

class MemoryTier final : public Tier {
 public:
  MemoryTier() = default;
  MemoryTier(std::byte* base, std::uint64_t capacity_bytes)
      : base_(base), capacity_bytes_(capacity_bytes) {}

  TierMedium medium() const override {
    return capacity_bytes_ == 0 ? TierMedium::kNone : TierMedium::kMemory;
  }
  std::uint64_t capacity_bytes() const override { return capacity_bytes_; }
  std::byte* address_of(TierExtent extent) const override;
  DevicePlace on_device(TierExtent) const override { return {}; }

 private:
  int do_read(TierExtent extent, std::span<const iovec> parts) const override;
  int do_write(TierExtent extent, std::span<const iovec> parts) const override;

  std::byte* base_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
};

}  // namespace cairn
