// SPDX-License-Identifier: Apache-2.0
#include "service/keeping/kept_text.h"

#include "base/check.h"

namespace cairn::node {

bool KeptText::put(std::string_view text) {
  if (text.size() > kBytesMax) return false;
  const std::uint32_t next = current_[0].load(std::memory_order_relaxed) + 1;
  Half& half = halves_[next % 2];
  text.copy(half.bytes, text.size());
  half.length = text.size();
  current_[0].store(next, std::memory_order_release);
  return true;
}

std::string KeptText::get() const {
  const std::uint32_t current = current_[0].load(std::memory_order_acquire);
  if (current == 0) return {};
  const Half& half = halves_[current % 2];
  CAIRN_CHECK(half.length <= kBytesMax);
  return {half.bytes, half.length};
}

}  // namespace cairn::node
