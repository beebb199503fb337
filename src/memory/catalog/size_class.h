// SPDX-License-Identifier: Apache-2.0
// Sizes of buckets: small files need not cost a whole block each.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

enum class SizeClass : std::uint8_t { k4KiB = 0, k16KiB = 1, k64KiB = 2 };
inline constexpr unsigned kSizeClasses = 3;

// Takes any value: one that is no class counts as the largest.
constexpr unsigned pages_in(SizeClass size_class) {
  const auto number = static_cast<unsigned>(size_class);
  return 1u << (2 * (number < kSizeClasses ? number : kSizeClasses - 1));
}
static_assert(pages_in(SizeClass::k64KiB) == kPagesPerBlock, "the largest bucket holds a block");
constexpr std::size_t bytes_in(SizeClass size_class) { return pages_in(size_class) * kPageBytes; }
// The smallest class that holds the first `end` bytes of a block.
constexpr SizeClass class_for(std::size_t end) {
  if (end <= bytes_in(SizeClass::k4KiB)) return SizeClass::k4KiB;
  return end <= bytes_in(SizeClass::k16KiB) ? SizeClass::k16KiB : SizeClass::k64KiB;
}

}  // namespace cairn
