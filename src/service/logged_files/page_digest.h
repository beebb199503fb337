// SPDX-License-Identifier: Apache-2.0
// A number of 64 bits for the bytes of a page, by which the log's writer sees that a page is as it
// was when it was logged. Two pages of one number would cost the second one its place in the log:
// with a random seed per process, nobody can make such pages.
//
// Source: the multiplication of two 64-bit words to 128 bits as a mixer, as in wyhash (public
// domain). Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn::node {

inline std::uint64_t folded_product(std::uint64_t left, std::uint64_t right) {
  const auto product = static_cast<unsigned __int128>(left) * right;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t page_digest(const std::byte* bytes, std::size_t length, std::uint64_t seed) {
  constexpr std::uint64_t kFirst = 0xa0761d6478bd642fU;
  constexpr std::uint64_t kSecond = 0xe7037ed1a0b428dbU;
  constexpr std::size_t kStep = 32;
  const auto word = [](const std::byte* at) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  std::uint64_t one = seed ^ kFirst;
  std::uint64_t two = seed ^ kSecond ^ length;
  std::size_t at = 0;
  for (; at + kStep <= length; at += kStep) {
    one = folded_product(word(bytes + at) ^ kFirst, word(bytes + at + 8) ^ one);
    two = folded_product(word(bytes + at + 16) ^ kSecond, word(bytes + at + 24) ^ two);
  }
  std::byte rest[kStep] = {};
  std::memcpy(rest, bytes + at, length - at);
  one = folded_product(word(rest) ^ kFirst, word(rest + 8) ^ one);
  two = folded_product(word(rest + 16) ^ kSecond, word(rest + 24) ^ two);
  return folded_product(one ^ kFirst, two ^ kSecond);
}

}  // namespace cairn::node
