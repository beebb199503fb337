// SPDX-License-Identifier: Apache-2.0
// A write as its parts, one for each block that it touches, and where a part goes that does not
// simply become bytes of RAM (memory/buffer/write_path.cc).
//
// Thread safety: any thread; the callers hold the block's lock where that is said. Ownership: a
// part borrows the caller's bytes.
#pragma once

#include "memory/buffer/block_access.h"

namespace cairn {

// One block's part of a write.
struct WritePart {
  BlockNumber number;
  std::size_t begin;
  std::size_t end;
  const std::byte* in;

  std::size_t length() const { return end - begin; }
  std::uint64_t offset() const { return offset_of(number) + begin; }
  std::uint64_t file_end() const { return offset_of(number) + end; }
};

// Pages of which the part covers only a piece: their other bytes must be there first.
inline std::uint16_t partial_pages(const WritePart& part) {
  std::uint16_t pages = 0;
  if (part.begin % kPageBytes != 0) pages |= pages_touched(part.begin, part.begin + 1);
  // A tail that ends at or past the end of the file has nothing behind it, but its page must not
  // keep old bytes.
  if (part.end % kPageBytes != 0) pages |= pages_touched(part.end - 1, part.end);
  return pages;
}

// Puts the part into the store. Requires: its pages are not valid in any bucket, or the caller goes
// on to put the bytes there as well, or to take them out of it.
ssize_t store_part(const ObjectAccess& access, const WritePart& part);

// A block that stays in its file tier: reads, changes and writes its pages there; a tier that does
// not take them is passed over, and the store gets them. 0 or -errno; -EAGAIN when the block is to
// be looked for again. A fresh block that the tier does not take stays as it was. Requires: the
// lock, no flush in flight.
int put_into_file_tier(const ObjectAccess& access, LockedBlock& block, const WritePart& part);

}  // namespace cairn
