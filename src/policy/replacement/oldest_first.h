// SPDX-License-Identifier: Apache-2.0
// Replacement: among the files of least priority, the blocks unused longest leave first. If two are
// of equal age, the clean one goes before the dirty one, because it costs no write.
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
