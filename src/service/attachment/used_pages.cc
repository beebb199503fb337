// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/used_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/system_call.h"

namespace cairn::node {

UsedPages::UsedPages(const SharedSegment& segment)
    : base_(segment.base()), pages_(segment.size_bytes() / kPageBytes, false) {
  if (segment.fd() >= 0) {
    ask_descriptor(segment);
  } else {
    ask_mapping(segment);
  }
}

void UsedPages::ask_mapping(const SharedSegment& segment) {
  std::vector<unsigned char> resident(pages_.size());
  const bool is_told = ::sysconf(_SC_PAGESIZE) == static_cast<long>(kPageBytes) &&
                       ::mincore(segment.base(), segment.size_bytes(), resident.data()) == 0;
  for (std::size_t page = 0; page < pages_.size(); ++page)
    pages_[page] = !is_told || (resident[page] & 1) != 0;
}

// The kernel counts pages that it has swapped out as data, which mincore() does not.
void UsedPages::ask_descriptor(const SharedSegment& segment) {
  const auto end = static_cast<off_t>(segment.size_bytes());
  off_t begin = 0;
  while (begin < end) {
    const off_t data = sys::lseek(segment.fd(), begin, SEEK_DATA);
    if (data == -ENXIO) return;
    const off_t hole = data < 0 ? data : sys::lseek(segment.fd(), data, SEEK_HOLE);
    // A kernel that does not tell: all of them may be used.
    const off_t first = hole <= data ? begin : data;
    const off_t past = hole <= data ? end : std::min(hole, end);
    for (off_t at = first; at < past; at += kPageBytes)
      pages_[static_cast<std::size_t>(at) / kPageBytes] = true;
    begin = past;
  }
}

bool UsedPages::has(const void* address) const {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
  CAIRN_DCHECK(offset / kPageBytes < pages_.size());
  return pages_[offset / kPageBytes];
}

}  // namespace cairn::node
