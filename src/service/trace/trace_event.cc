// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_event.h"

namespace cairn {

std::uint32_t NameTable::number_of(std::string_view name) {
  const auto [found, is_new] = numbers_.try_emplace(std::string(name), count());
  if (is_new) names_.emplace_back(name);
  return found->second;
}

}  // namespace cairn
