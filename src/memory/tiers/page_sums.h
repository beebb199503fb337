// SPDX-License-Identifier: Apache-2.0
// The checksums of the pages of one tier, in the control segment: a word for each page of 4 KiB.
//
// A file tier writes down what it has been given, and compares with that whatever it gives back
// (FileTier); of the RAM tier only those pages count that a block names as sealed
// (memory/tiers/page_seals.h).
//
// A word is kUnknown from before the bytes of its page change until they are there. So a process
// that is killed in between leaves a page that counts as good, and never one that is good and
// counts as broken.
//
// Source of the checksum: the low half of XXH3 with 64 bits (Collet, xxhash.com). Thread safety: a
// writer of a page holds the lock of its block; a reader without that lock may meet a page and a
// word of two moments, and asks again with the lock. Ownership: borrows the words.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/tiers/tier.h"

namespace cairn {

// `page` has kPageBytes bytes. Never PageSums::kUnknown.
std::uint32_t page_sum(const void* page);

class PageSums {
 public:
  using Word = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kUnknown = 0;

  // No checksums at all: nothing is noted, and everything agrees.
  PageSums() = default;
  PageSums(Word* words, std::uint64_t pages) : words_(words), pages_(pages) {}

  bool are_kept() const { return words_ != nullptr; }
  // All of these require that the extent is of whole pages and lies in the tier, and that the parts
  // are of whole pages and together as long as it.
  void forget(TierExtent extent) const;
  void note(TierExtent extent, std::span<const iovec> parts) const;
  // No page of the parts is another one than was noted.
  bool agree(TierExtent extent, std::span<const iovec> parts) const;
  // These pages have the bytes that the pages `origin` of another tier have.
  void copy(TierExtent extent, const PageSums& from, TierExtent origin) const;

  std::uint32_t of(std::uint64_t offset) const;

 private:
  Word* first_of(TierExtent extent) const;

  Word* words_ = nullptr;
  std::uint64_t pages_ = 0;
};

}  // namespace cairn
