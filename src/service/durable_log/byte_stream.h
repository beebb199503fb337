// SPDX-License-Identifier: Apache-2.0
// The numbers and strings of a record, one behind the other, without gaps.
//
// Thread safety: none. Ownership: borrow the bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/check.h"

namespace cairn::durable {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

class ByteSink {
 public:
  explicit ByteSink(std::span<std::byte> out) : out_(out) {}
  template <typename T>
  void put(T value) {
    CAIRN_DCHECK(used_ + sizeof value <= out_.size());
    std::memcpy(out_.data() + used_, &value, sizeof value);
    used_ += sizeof value;
  }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> out_;
  std::size_t used_ = 0;
};

class ByteSource {
 public:
  explicit ByteSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    if (bytes_.size() - used_ < sizeof value) {
      is_short_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + used_, sizeof value);
    used_ += sizeof value;
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (bytes_.size() - used_ < count) {
      is_short_ = true;
      return {};
    }
    const std::span<const std::byte> taken = bytes_.subspan(used_, count);
    used_ += count;
    return taken;
  }
  bool is_short() const { return is_short_; }
  bool is_at_end() const { return !is_short_ && used_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t used_ = 0;
  bool is_short_ = false;
};

}  // namespace cairn::durable
