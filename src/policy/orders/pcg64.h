// SPDX-License-Identifier: Apache-2.0
// The generator behind numpy.random.default_rng(seed): PCG64, seeded by way of SeedSequence.
//
// Sources: O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms for
// random number generation", HMC-CS-2014-0905 (the variant XSL-RR 128/64, one multiplication a
// step); numpy/random/bit_generator.pyx (SeedSequence) and src/pcg64 of NumPy 1.17 to 2.x, whose
// NEP 19 keeps both streams as they are.
//
// Thread safety: none. Ownership: a value.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

// What SeedSequence(seed).generate_state(4, numpy.uint64) returns.
std::array<std::uint64_t, 4> seed_sequence_state(std::uint64_t seed);

class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next();
  // Two of them come from one number of 64 bits, its low half first.
  std::uint32_t next_32();

 private:
  __extension__ using Wide = unsigned __int128;
  void step();

  Wide state_ = 0;
  Wide increment_ = 0;
  std::uint32_t high_half_ = 0;
  bool has_high_half_ = false;
};

}  // namespace cairn
