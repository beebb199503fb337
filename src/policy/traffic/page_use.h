// SPDX-License-Identifier: Apache-2.0
// One reference of a model of traffic.
#pragma once

#include <cstdint>

namespace cairn {

struct PageUse {
  double time = 0;  // in the units of the model, never less than that of the use before
  std::uint64_t page = 0;

  friend bool operator==(const PageUse&, const PageUse&) = default;
};

}  // namespace cairn
