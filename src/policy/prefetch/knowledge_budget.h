// SPDX-License-Identifier: Apache-2.0
// The memory that the knowledge about all files of a node may take. A part that gets no room stays
// as large as it is.
//
// Thread safety: none.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace cairn {

class KnowledgeBudget {
 public:
  explicit KnowledgeBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_used() const { return bytes_used_; }
  // Whether there was so much left; it is taken then.
  [[nodiscard]] bool reserve(std::size_t bytes) {
    if (bytes > bytes_max_ - bytes_used_) return false;
    bytes_used_ += bytes;
    return true;
  }
  void release(std::size_t bytes) {
    CAIRN_CHECK(bytes <= bytes_used_);
    bytes_used_ -= bytes;
  }

 private:
  const std::size_t bytes_max_;
  std::size_t bytes_used_ = 0;
};

}  // namespace cairn
