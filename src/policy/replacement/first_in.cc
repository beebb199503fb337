// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/first_in.h"

#include <algorithm>

namespace cairn {

std::size_t FirstIn::choose(std::span<BlockView> candidates,
                            const ReplacementRequest& request) const {
  const auto age = [&](const BlockView& block) {
    return elapsed_ms(request.now_ms, block.placed_ms);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const BlockView& left, const BlockView& right) {
              if (left.priority != right.priority) return left.priority < right.priority;
              if (age(left) != age(right)) return age(left) > age(right);
              if (left.dirty != right.dirty) return right.dirty;
              return raw(left.bucket) < raw(right.bucket);
            });
  return count_for(candidates, request.bytes_wanted);
}

}  // namespace cairn
