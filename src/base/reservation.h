// SPDX-License-Identifier: Apache-2.0
// So many bytes of a tier that are guaranteed to somebody: to a run, or to the files of a rule.
//
// Thread safety: plain values, pure functions. Ownership: owns its strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

struct Reservation {
  std::string tier;  // its name; empty: the fastest
  std::uint64_t bytes = 0;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// "SIZE" or "TIER:SIZE". Returns: nothing when the text is neither.
std::optional<Reservation> parse_reservation(std::string_view text);
// The text that parse_reservation() reads again.
std::string reservation_text(const Reservation& reservation);

}  // namespace cairn
