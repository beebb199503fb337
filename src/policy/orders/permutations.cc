// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/permutations.h"

#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace cairn {
namespace {

std::uint32_t next_word(std::mt19937& generator) { return static_cast<std::uint32_t>(generator()); }
std::uint32_t next_word(Pcg64& generator) { return generator.next_32(); }

// Returns: at most `highest`. Requires: > 0.
template <typename Generator>
std::uint32_t masked_index(Generator& generator, std::uint32_t highest) {
  CAIRN_DCHECK(highest > 0);
  const std::uint32_t mask = UINT32_MAX >> std::countl_zero(highest);
  std::uint32_t index;
  do {
    index = next_word(generator) & mask;
  } while (index > highest);
  return index;
}

template <typename Generator>
void shuffle_from_the_end(Generator& generator, std::span<std::uint32_t> items) {
  for (std::size_t index = items.size(); index-- > 1;) {
    std::swap(items[index], items[masked_index(generator, static_cast<std::uint32_t>(index))]);
  }
}

}  // namespace

void number_items(std::span<std::uint32_t> items) { std::iota(items.begin(), items.end(), 0U); }

std::uint64_t torch_random_64(std::mt19937& generator) {
  const std::uint64_t high = generator();
  const std::uint64_t low = generator();
  return high << 32 | low;
}

void permute_as_torch(std::mt19937& generator, std::span<std::uint32_t> items) {
  if (items.size() >= kTorchWideItems) {
    permute_as_torch_wide(generator, items);
    return;
  }
  number_items(items);
  for (std::size_t index = 0; index + 1 < items.size(); ++index) {
    const auto left = static_cast<std::uint32_t>(items.size() - index);
    const std::uint32_t distance = static_cast<std::uint32_t>(generator()) % left;
    std::swap(items[index], items[index + distance]);
  }
}

void permute_as_torch_wide(std::mt19937& generator, std::span<std::uint32_t> items) {
  for (std::size_t index = 0; index < items.size(); ++index) {
    const std::size_t other = torch_random_64(generator) % (index + 1);
    items[index] = items[other];
    items[other] = static_cast<std::uint32_t>(index);
  }
}

void shuffle_as_numpy(std::mt19937& generator, std::span<std::uint32_t> items) {
  shuffle_from_the_end(generator, items);
}

void shuffle_as_numpy(Pcg64& generator, std::span<std::uint32_t> items) {
  shuffle_from_the_end(generator, items);
}

}  // namespace cairn
