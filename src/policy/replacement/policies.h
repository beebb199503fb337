// SPDX-License-Identifier: Apache-2.0
// The table of replacement policies. A new policy is added here and nowhere else.
//
// Thread safety: constant data.
#pragma once

#include <array>

#include "policy/replacement/oldest_first.h"

namespace cairn {

// The first is the default.
inline std::array<const ReplacementPolicy*, 1> replacement_policies() {
  static const OldestFirst kOldestFirst;
  return {&kOldestFirst};
}

}  // namespace cairn
