// SPDX-License-Identifier: Apache-2.0
// What a device makes of the writes that no flush has covered when its power is cut: each sector of
// each of them is there, or not, or its first bytes are, and some writes overtake others.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random_source.h"

namespace cairn::testing {

struct UnflushedWrite {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

// The bytes after the cut, of what was durable before.
std::vector<std::byte> survivors(std::vector<std::byte> durable, std::vector<UnflushedWrite> writes,
                                 RandomSource& random);

}  // namespace cairn::testing
