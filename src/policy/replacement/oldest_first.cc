// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/oldest_first.h"

#include <algorithm>

namespace cairn {

std::size_t OldestFirst::choose(std::span<BlockView> candidates,
                                const ReplacementRequest& request) const {
  std::sort(candidates.begin(), candidates.end(),
            [&](const BlockView& left, const BlockView& right) {
              if (left.priority != right.priority) return left.priority < right.priority;
              return is_older(left, right, request.now_ms);
            });
  return count_for(candidates, request.bytes_wanted);
}

}  // namespace cairn
