// SPDX-License-Identifier: Apache-2.0
// The bytes that libFuzzer gives a target, taken from the front.
//
// Thread safety: none. Ownership: borrows the bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace cairn::fuzz {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  // Zero where nothing is left.
  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::size_t bytes = rest_.size() < sizeof(T) ? rest_.size() : sizeof(T);
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }
  std::string_view take_bytes(std::size_t most) {
    const std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace cairn::fuzz
