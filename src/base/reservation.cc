// SPDX-License-Identifier: Apache-2.0
#include "base/reservation.h"

#include <algorithm>
#include <cctype>

#include "base/size_text.h"

namespace cairn {

std::optional<Reservation> parse_reservation(std::string_view text) {
  Reservation reservation;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const std::string_view tier = text.substr(0, colon);
    const bool is_name = std::all_of(tier.begin(), tier.end(), [](unsigned char letter) {
      return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
    });
    if (tier.empty() || !is_name) return std::nullopt;
    reservation.tier = tier;
    text.remove_prefix(colon + 1);
  }
  const auto bytes = parse_size(text);
  if (!bytes) return std::nullopt;
  reservation.bytes = *bytes;
  return reservation;
}

std::string reservation_text(const Reservation& reservation) {
  const std::string size = format_size_exact(reservation.bytes);
  return reservation.tier.empty() ? size : reservation.tier + ":" + size;
}

}  // namespace cairn
