// SPDX-License-Identifier: Apache-2.0
// When the node compares the bytes of a page with the checksum that it had: one enumeration for the
// configuration and the tiers.
//
// Thread safety: values.
#pragma once

#include <cstdint>

namespace cairn {

enum class Checksums : std::uint8_t {
  kMovement,  // whenever a page leaves for another tier, or comes from a file tier
  kAll,       // also at the first read of a page that has come from the store
  kOff,       // never
};

}  // namespace cairn
