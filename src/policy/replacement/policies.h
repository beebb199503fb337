// SPDX-License-Identifier: Apache-2.0
// The table of replacement policies. A new policy is added here, and to the choices of the option
// replacement.expert (cli/configuration/option_table.cc).
//
// Thread safety: constant data.
#pragma once

#include <array>
#include <string_view>

#include "policy/replacement/first_in.h"
#include "policy/replacement/oldest_first.h"

namespace cairn {

// The first is the one beside which learning is measured.
inline std::array<const ReplacementPolicy*, 2> replacement_policies() {
  static const OldestFirst kOldestFirst;
  static const FirstIn kFirstIn;
  return {&kOldestFirst, &kFirstIn};
}

// Returns: null when no policy of the table has that name.
inline const ReplacementPolicy* replacement_policy_named(std::string_view name) {
  for (const ReplacementPolicy* policy : replacement_policies()) {
    if (name == policy->name()) return policy;
  }
  return nullptr;
}

}  // namespace cairn
