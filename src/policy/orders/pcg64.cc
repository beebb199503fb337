// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/pcg64.h"

#include <bit>
#include <cstddef>

namespace cairn {
namespace {

constexpr std::size_t kPoolWords = 4;
constexpr unsigned kMixShift = 16;

// Each word is hashed with another constant, which the one before determines.
class WordHash {
 public:
  constexpr WordHash(std::uint32_t first, std::uint32_t factor)
      : constant_(first), factor_(factor) {}
  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= factor_;
    value *= constant_;
    return value ^ (value >> kMixShift);
  }

 private:
  std::uint32_t constant_;
  const std::uint32_t factor_;
};

std::uint32_t mix(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t mixed = 0xca01f9ddU * left - 0x4973f715U * right;
  return mixed ^ (mixed >> kMixShift);
}

std::array<std::uint32_t, kPoolWords> seed_pool(std::uint64_t seed) {
  // A seed of 64 bits has at most two words, and words that are not there count as zero, so that
  // the seeds below 2^32 need no case of their own.
  std::array<std::uint32_t, kPoolWords> pool = {static_cast<std::uint32_t>(seed),
                                                static_cast<std::uint32_t>(seed >> 32), 0, 0};
  WordHash hash(0x43b0d7e5U, 0x931e8875U);
  for (std::uint32_t& word : pool) word = hash(word);
  for (std::size_t source = 0; source < kPoolWords; ++source) {
    for (std::size_t target = 0; target < kPoolWords; ++target) {
      if (source != target) pool[target] = mix(pool[target], hash(pool[source]));
    }
  }
  return pool;
}

}  // namespace

std::array<std::uint64_t, 4> seed_sequence_state(std::uint64_t seed) {
  const auto pool = seed_pool(seed);
  WordHash hash(0x8b51f9ddU, 0x58f38dedU);
  std::array<std::uint64_t, 4> state{};
  for (std::size_t word = 0; word < 2 * state.size(); ++word) {
    const std::uint64_t half = hash(pool[word % kPoolWords]);
    state[word / 2] |= half << (32 * (word % 2));
  }
  return state;
}

Pcg64::Pcg64(std::uint64_t seed) {
  const auto words = seed_sequence_state(seed);
  increment_ = ((Wide{words[2]} << 64 | words[3]) << 1) | 1;
  step();
  state_ += Wide{words[0]} << 64 | words[1];
  step();
}

void Pcg64::step() {
  constexpr Wide kFactor = Wide{0x2360ed051fc65da4ULL} << 64 | 0x4385df649fccf645ULL;
  state_ = state_ * kFactor + increment_;
}

std::uint64_t Pcg64::next() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  const auto low = static_cast<std::uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

std::uint32_t Pcg64::next_32() {
  if (has_high_half_) {
    has_high_half_ = false;
    return high_half_;
  }
  const std::uint64_t both = next();
  high_half_ = static_cast<std::uint32_t>(both >> 32);
  has_high_half_ = true;
  return static_cast<std::uint32_t>(both);
}

}  // namespace cairn
