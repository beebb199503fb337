// SPDX-License-Identifier: Apache-2.0
// The permutations that training loops are made of, bit for bit as the libraries draw them.
//
// PyTorch's CPU generator and NumPy's RandomState are both the MT19937 of <random>, seeded with the
// low 32 bits of the seed (ATen/core/MT19937RNGEngine.h; numpy/random/src/mt19937/mt19937.c). They
// differ in how they turn its numbers into permutations; that part stands here.
//
// Thread safety: pure but for the generator that is passed. Ownership: the caller's.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "policy/orders/pcg64.h"

namespace cairn {

// 0, 1, 2, ...
void number_items(std::span<std::uint32_t> items);

// A generator after manual_seed(seed), or RandomState(seed).
inline std::mt19937 mersenne_twister(std::uint64_t seed) {
  return std::mt19937(static_cast<std::uint32_t>(seed));
}

// What torch.Generator.random64() returns: the first of two numbers is the upper half.
std::uint64_t torch_random_64(std::mt19937& generator);

// items = torch.randperm(items.size(), generator=generator) on the CPU (randperm_cpu of
// ATen/native/TensorFactories.cpp; compared with PyTorch 1.13.0 and 2.15.0).
void permute_as_torch(std::mt19937& generator, std::span<std::uint32_t> items);
// From so many items on, numbers of 64 bits are drawn and the array is filled from the inside out:
// UINT32_MAX / 20. Older releases draw 32 bits for any number of items.
inline constexpr std::uint64_t kTorchWideItems = UINT32_MAX / 20;
// The latter, for any number of items.
void permute_as_torch_wide(std::mt19937& generator, std::span<std::uint32_t> items);
// How many numbers of 32 bits permute_as_torch() draws for so many items.
constexpr std::uint64_t torch_permutation_draws(std::uint64_t items) {
  return items >= kTorchWideItems ? 2 * items : items - 1;
}

// numpy.random.RandomState.shuffle(items) and numpy.random.Generator.shuffle(items): Fisher-Yates
// from the end, each index by masking 32 bits and trying again (random_interval of
// numpy/random/src/distributions/distributions.c). Generator has Lemire's multiplication for
// integers(), but does not shuffle with it.
void shuffle_as_numpy(std::mt19937& generator, std::span<std::uint32_t> items);
void shuffle_as_numpy(Pcg64& generator, std::span<std::uint32_t> items);

}  // namespace cairn
