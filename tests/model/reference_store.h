// SPDX-License-Identifier: Apache-2.0
// What the whole stack must agree with: files as byte arrays, and nothing else.
//
// It knows no blocks, tiers, clients or flushes; every operation is a few lines that can be read
// against POSIX.
// Thread safety: none; concurrent tests give each thread files of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::model {

class ReferenceFile {
 public:
  void write(std::uint64_t offset, const std::vector<std::byte>& bytes) {
    if (bytes.empty()) return;
    if (bytes_.size() < offset + bytes.size()) bytes_.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  std::uint64_t append(const std::vector<std::byte>& bytes) {
    const std::uint64_t offset = bytes_.size();
    write(offset, bytes);
    return offset;
  }
  std::vector<std::byte> read(std::uint64_t offset, std::size_t length) const {
    const std::uint64_t begin = std::min<std::uint64_t>(offset, bytes_.size());
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, bytes_.size());
    return {bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes_.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  void truncate(std::uint64_t size) { bytes_.resize(size); }
  // Zeroes a range; the size changes only when `grow` is set.
  void zero(std::uint64_t offset, std::uint64_t length, bool grow) {
    if (grow && bytes_.size() < offset + length) bytes_.resize(offset + length);
    const std::uint64_t begin = std::min<std::uint64_t>(offset, bytes_.size());
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, bytes_.size());
    std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
              bytes_.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace cairn::model
