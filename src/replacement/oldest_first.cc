// SPDX-License-Identifier: Apache-2.0
#include "replacement/oldest_first.h"

#include <algorithm>

namespace cairn {

std::size_t OldestFirst::choose(std::span<BlockView> candidates,
                                const ReplacementRequest& request) const {
  std::sort(candidates.begin(), candidates.end(),
            [&](const BlockView& left, const BlockView& right) {
              if (left.priority != right.priority) return left.priority < right.priority;
              const std::uint32_t left_age = request.now_ms - left.recency_ms;
              const std::uint32_t right_age = request.now_ms - right.recency_ms;
              if (left_age != right_age) return left_age > right_age;
              if (left.dirty != right.dirty) return right.dirty;
              return raw(left.bucket) < raw(right.bucket);
            });
  return count_for(candidates, request.bytes_wanted);
}

}  // namespace cairn
