// SPDX-License-Identifier: Apache-2.0
// Numbers and byte strings of a message, one behind the other, little-endian, without gaps.
//
// A reader never reads past its bytes: a value that is not all there is zero, and is_whole() is
// false from then on, so that a decoder asks once, at its end.
// Thread safety: none. Ownership: the reader borrows the bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace cairn::cluster {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

using Bytes = std::vector<std::byte>;

class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "padding must not leave the node");
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  // Without their number.
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // With it, as 32 bits.
  void put_string(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    put_bytes(bytes);
  }
  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    T value{};
    const std::span<const std::byte> taken = take_bytes(sizeof value);
    if (taken.size() == sizeof value) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (bytes_.size() < count) {
      is_short_ = true;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::span<const std::byte> take_string() { return take_bytes(take<std::uint32_t>()); }
  // The number of elements, each of `bytes_each` or more: bounded by what is there, so that
  // no decoder reserves memory for a number that a stranger has sent.
  std::uint32_t take_count(std::size_t bytes_each) {
    const auto count = take<std::uint32_t>();
    if (count > bytes_.size() / bytes_each) is_short_ = true;
    return is_short_ ? 0 : count;
  }
  bool is_whole() const { return !is_short_; }
  bool is_at_end() const { return !is_short_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool is_short_ = false;
};

}  // namespace cairn::cluster
