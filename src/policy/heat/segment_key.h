// SPDX-License-Identifier: Apache-2.0
// Which segment of which file. The number counts segments of the size that the file's heat map has
// at the time (policy/heat/file_heat.h).
//
// Thread safety: values.
#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

struct SegmentKey {
  ObjectIndex object{};
  std::uint32_t segment = 0;

  friend auto operator<=>(const SegmentKey&, const SegmentKey&) = default;
};

}  // namespace cairn
