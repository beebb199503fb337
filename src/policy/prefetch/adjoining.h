// SPDX-License-Identifier: Apache-2.0
// Whether a read goes on where another has ended. Reads that do not begin at a block boundary share
// a block with the read before, so their blocks overlap by one.
//
// Thread safety: values.
#pragma once

#include "policy/prefetch/predictor.h"

namespace cairn {

// `end`: the first block behind what was read before.
inline bool goes_on_at(BlockRun run, std::int64_t end) {
  return run.first == end || (run.count > 1 && run.first + 1 == end);
}

}  // namespace cairn
