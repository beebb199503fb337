// SPDX-License-Identifier: Apache-2.0
#include "base/io_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace cairn {
namespace {

// What the parts say, one after the other.
std::string text_of(std::span<const iovec> parts) {
  std::string text;
  for (const iovec& part : parts)
    text.append(static_cast<const char*>(part.iov_base), part.iov_len);
  return text;
}

TEST(IoParts, WhatIsDoneIsLeftOut) {
  std::string text = "abcdefghij";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t done = 0; done <= text.size(); ++done) {
      std::array<iovec, 3> parts{iovec{text.data(), first / 2},
                                 iovec{text.data() + first / 2, first - first / 2},
                                 iovec{text.data() + first, text.size() - first}};
      const std::span<iovec> left = parts_after(parts, done);
      EXPECT_EQ(text_of(left), text.substr(done)) << first << " " << done;
      for (const iovec& part : left.first(left.empty() ? 0 : 1)) EXPECT_NE(part.iov_len, 0U);
    }
  }
}

TEST(IoParts, PiecesOfAnyLengthGoThroughAll) {
  std::string text = "abcdefghij";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    std::array<iovec, 2> parts{iovec{text.data(), 4}, iovec{text.data() + 4, 6}};
    std::string read;
    for (std::span<iovec> left = parts; !left.empty();) {
      const std::string rest = text_of(left);
      const std::size_t done = std::min(step, rest.size());
      read += rest.substr(0, done);
      left = parts_after(left, done);
    }
    EXPECT_EQ(read, text);
  }
}

}  // namespace
}  // namespace cairn
