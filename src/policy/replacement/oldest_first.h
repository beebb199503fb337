// SPDX-License-Identifier: Apache-2.0
// Replacement: what was used longest ago leaves first, of the files of least priority. Of equal
// age, clean blocks before dirty ones: they cost no write.
//
// Thread safety: no state.
#pragma once

#include "policy/replacement/replacement_policy.h"

namespace cairn {

class OldestFirst final : public ReplacementPolicy {
 public:
  const char* name() const override { return "oldest-first"; }
  std::size_t choose(std::span<BlockView> candidates,
                     const ReplacementRequest& request) const override;
};

}  // namespace cairn
