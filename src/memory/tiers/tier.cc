// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/tier.h"

#include "base/check.h"

namespace cairn {
namespace {

// What direct I/O asks for, and as many bytes as the extent has.
[[maybe_unused]] bool are_aligned(TierExtent extent, std::span<const iovec> parts) {
  std::size_t length = 0;
  for (const iovec& part : parts) {
    if ((reinterpret_cast<std::uintptr_t>(part.iov_base) | part.iov_len) % kPageBytes != 0)
      return false;
    length += part.iov_len;
  }
  return extent.is_whole_pages() && length == extent.length;
}

}  // namespace

int Tier::read_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  CAIRN_DCHECK(are_aligned(extent, parts));
  return do_read(extent, parts);
}

int Tier::write_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  CAIRN_DCHECK(are_aligned(extent, parts));
  return do_write(extent, parts);
}

int Tier::read_pages(TierExtent extent, void* out) const {
  const iovec part{out, extent.length};
  return read_parts(extent, std::span(&part, 1));
}

int Tier::write_pages(TierExtent extent, const void* in) const {
  const iovec part{const_cast<void*>(in), extent.length};
  return write_parts(extent, std::span(&part, 1));
}

int copy_place(const TierPlace& from, const TierPlace& to) {
  CAIRN_DCHECK(from.extent.length == to.extent.length);
  if (const std::byte* bytes = from.address(); bytes != nullptr) return to.write(bytes);
  std::byte* const bytes = to.address();
  CAIRN_DCHECK(bytes != nullptr);
  return from.read(bytes);
}

}  // namespace cairn
