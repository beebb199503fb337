// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/memory_tier.h"

#include <errno.h>

#include "base/check.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {

std::byte* MemoryTier::address_of(TierExtent extent) const {
  CAIRN_DCHECK(has(extent));
  return base_ + extent.offset;
}

int MemoryTier::do_read(TierExtent extent, std::span<const iovec> parts) const {
  const std::byte* from = address_of(extent);
  for (const iovec& part : parts) {
    if (copy_from_shared(part.iov_base, from, part.iov_len) != 0) return -EFAULT;
    from += part.iov_len;
  }
  return 0;
}

int MemoryTier::do_write(TierExtent extent, std::span<const iovec> parts) const {
  std::byte* to = address_of(extent);
  for (const iovec& part : parts) {
    if (copy_to_shared(to, part.iov_base, part.iov_len) != 0) return -EFAULT;
    to += part.iov_len;
  }
  return 0;
}

}  // namespace cairn
