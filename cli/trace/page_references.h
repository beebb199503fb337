// SPDX-License-Identifier: Apache-2.0
//
// The pages that the accesses of a trace use, in their order. Pieces of one page in a row are one
// use of it.
//
// Thread safety: none. Ownership: a few numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "service/trace/trace_event.h"

namespace cairn::cli {

class PageReferences {
 public:
  // Requires: page_bytes > 0.
  explicit PageReferences(std::uint64_t page_bytes) : page_bytes_(page_bytes) {}

  // Calls `use(key)` for each page that the event reads or writes; keys differ between files.
  template <typename Use>
  void add(const TraceEvent& event, Use use) {
    if (event.kind != TraceKind::kReadMiss && event.kind != TraceKind::kReadHit &&
        event.kind != TraceKind::kReadPrefetched && event.kind != TraceKind::kWrite) {
      return;
    }
    const std::uint64_t length = std::max<std::uint64_t>(event.length, 1);
    const std::uint64_t last = (event.offset + length - 1) / page_bytes_;
    for (std::uint64_t page = event.offset / page_bytes_; page <= last; ++page) {
      const std::uint64_t key = (std::uint64_t{event.file} << 40) ^ page;
      if (!is_first_ && key == last_key_) continue;
      is_first_ = false;
      last_key_ = key;
      use(key);
    }
  }

 private:
  const std::uint64_t page_bytes_;
  std::uint64_t last_key_ = 0;
  bool is_first_ = true;
};

}  // namespace cairn::cli
