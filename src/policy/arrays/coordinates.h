// SPDX-License-Identifier: Apache-2.0
// A place in an array, or one number per dimension of it: sizes, widths, steps. The last dimension
// changes fastest in memory (row-major, as C and HDF5 have it).
//
// Units: cells. Thread safety: values. Ownership: holds its numbers itself, without the heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/check.h"

namespace cairn::arrays {

// As many as HDF5 allows (H5S_MAX_RANK).
inline constexpr std::size_t kDimensionsMax = 32;

class Coordinates {
 public:
  Coordinates() = default;
  // All of them `value`. Requires: at most kDimensionsMax.
  explicit Coordinates(std::size_t dimensions, std::uint64_t value)
      : size_(static_cast<std::uint32_t>(dimensions)) {
    CAIRN_CHECK(dimensions <= kDimensionsMax);
    for (std::size_t at = 0; at < kDimensionsMax && at < dimensions; ++at) values_[at] = value;
  }
  Coordinates(std::initializer_list<std::uint64_t> values)
      : Coordinates(std::span(values.begin(), values.size())) {}
  explicit Coordinates(std::span<const std::uint64_t> values)
      : size_(static_cast<std::uint32_t>(values.size())) {
    CAIRN_CHECK(values.size() <= kDimensionsMax);
    for (std::size_t at = 0; at < kDimensionsMax && at < size_; ++at) values_[at] = values[at];
  }
  std::size_t size() const { return size_; }
  std::uint64_t& operator[](std::size_t dimension) {
    CAIRN_DCHECK(dimension < size_);
    return values_[dimension];
  }
  std::uint64_t operator[](std::size_t dimension) const {
    CAIRN_DCHECK(dimension < size_);
    return values_[dimension];
  }
  std::span<const std::uint64_t> all() const { return {values_.data(), size_}; }
  bool operator==(const Coordinates&) const = default;

 private:
  std::uint32_t size_ = 0;
  std::array<std::uint64_t, kDimensionsMax> values_{};  // those behind the first size_ are 0
};

}  // namespace cairn::arrays
