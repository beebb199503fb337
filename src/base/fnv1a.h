// SPDX-License-Identifier: Apache-2.0
// The sum by which formats on disk tell damage: 64 bits, variant 1a (Fowler, Noll, Vo:
// draft-eastlake-fnv). It finds torn and garbled bytes, not forged ones.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return sum;
}
static_assert(fnv1a("a") == 0xaf63dc4c8601ec8cULL, "a test vector of the draft");

}  // namespace cairn
