// SPDX-License-Identifier: Apache-2.0
// Replacement "fifo": among the files of least priority, the blocks that came into the tier first
// leave first, used or not. ARCHIE's garbage collection (section III-A), for analyses
// that go through their data once and in order. If two came in the same millisecond, the clean one
// goes before the dirty one, because it costs no write.
//
// Thread safety: no state.
#pragma once

#include "policy/replacement/replacement_policy.h"

namespace cairn {

class FirstIn final : public ReplacementPolicy {
 public:
  const char* name() const override { return "fifo"; }
  std::size_t choose(std::span<BlockView> candidates,
                     const ReplacementRequest& request) const override;
};

}  // namespace cairn
